-- record: adds measured times to a minute's histogram.
-- In:  minute, queue, priority, metric (wait or run), bucket, count.
-- Out: nothing.

-- @statement record
insert into millpond_histograms (minute, queue, priority, metric, bucket, count)
values (:minute, :queue, :priority, :metric, :bucket, :count)
on conflict do update set count = count + excluded.count
