-- record: adds measured times to the current minute's histograms.
-- In:  slices: objects with queue, priority, metric (wait or run), buckets: an object with the count of each bucket.

create or replace function millpond.record(slices json, now bigint default null) returns void
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_minute bigint := time_of(record.now) / 60000;
begin
  perform set_config('synchronous_commit', 'off', true);
  insert into histograms as known (minute, queue, priority, metric, bucket, count)
  select v_minute, queues.id, slice.priority, slice.metric, each.key::integer, sum(each.value::bigint)
  from json_to_recordset(record.slices) as slice(queue text, priority smallint, metric text, buckets json)
  join queues on queues.name = slice.queue cross join lateral json_each_text(slice.buckets) as each
  group by queues.id, slice.priority, slice.metric, each.key
  -- In one order for all, so that two at once cannot wait for each other.
  order by queues.id, slice.priority, slice.metric, each.key::integer
  on conflict (minute, queue, priority, metric, bucket) do update set count = known.count + excluded.count;
end $$;
