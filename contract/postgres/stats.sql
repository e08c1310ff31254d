-- stats: what people look at.
-- In:  queue, null: all; minutes: how far back the histograms go, 0: none.
-- Out: JSON per queue: settings, counts, oldestWaiting in ms, histograms merged over the minutes.
-- Invariant: nothing here scans the jobs. The oldest is taken from the first 64 of each line and priority.

create or replace function millpond.stats(queue text default null, minutes integer default 0, now bigint default null) returns setof json
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now bigint := time_of(stats.now);
begin
  return query
    select json_build_object(
      'queue', q.name, 'paused', q.paused, 'capacity', q.capacity,
      'counts', (
        select coalesce(json_object_agg(state, count), '{}') from counts_of(q.id)),
      'oldestWaiting', (
        select v_now - min(due_at) from (
          select head.due_at from lines cross join generate_series(1, 10) as level(nth) cross join lateral (
            select due_at from waiting
            where queue = q.id and line = lines.line and not scheduled and priority = (10 - level.nth)::smallint
              and seq >= lines.places[level.nth]
            order by seq limit 64
          ) as head where lines.queue = q.id
        ) as heads),
      'histograms', (
        select coalesce(json_agg(json_build_object('priority', priority, 'metric', metric, 'buckets', buckets)), '[]')
        from (
          select priority, metric, json_object_agg(bucket, count) as buckets
          from (
            select priority, metric, bucket, sum(count) as count from histograms
            where histograms.queue = q.id and stats.minutes > 0 and minute > v_now / 60000 - stats.minutes
            group by priority, metric, bucket
          ) as summed group by priority, metric
        ) as merged))
    from queues as q
    where stats.queue is null or q.name = stats.queue;
end $$;
