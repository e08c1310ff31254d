-- record: adds measured times to the histogram of the minute.
-- In:  now, queue, priority, metric (wait or run), bucket, count.
-- Out: nothing.

-- @statement record
insert into millpond_histograms (minute, queue, priority, metric, bucket, count)
values (cast(:now / 60000 as integer), :queue, :priority, :metric, :bucket, :count)
on conflict do update set count = count + excluded.count
