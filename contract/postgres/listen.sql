-- listen: bells for other processes. With LISTEN on the schema's name they come as text, kind:queue. `work`, `room` and `finished` come
-- only where a claim, a push or a find has noted its listener (`sleepers`), and once: who goes on waiting looks again, which notes him
-- again. `cancelled`, for workers, comes whenever a running job was cancelled.
-- watch: for those who cannot LISTEN.
-- In:  the names of the queues that they are concerned with; null: all.
-- Out: JSON per queue that is there: queue, work, room, finished, cancelled. Whenever one of the four has changed, ring the bell of that
--      name; for a queue that is there no more, ring room, finished and cancelled. They follow how often a job became scheduled or
--      waiting (with limits: or ceased to run, or to wait but for a start), and the limits and the pause; how often one left blocked,
--      scheduled or waiting, and the capacity (null: none); how often one ended; and how often one was cancelled while running.

create or replace function millpond.watch(queues text[] default null) returns setof json
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
begin
  return query
    select json_build_object('queue', q.name,
      'work', m.ready || '/' || coalesce((select version from limits where limits.queue = q.id), 0) || '/' || q.paused,
      'room', q.capacity || '/' || m.room, 'finished', m.finished, 'cancelled', m.stopped)
    from unnest(coalesce(watch.queues, array(select name from queues))) as given(name)
    join queues as q on q.name = given.name cross join lateral (
      select
        coalesce(sum(count) filter (where becomes in ('scheduled', 'waiting')
          or q.limits is not null and was in ('waiting', 'running') and becomes <> 'running'), 0) as ready,
        coalesce(sum(count) filter (where was in ('blocked', 'scheduled', 'waiting')
          and becomes not in ('blocked', 'scheduled', 'waiting')), 0) as room,
        coalesce(sum(count) filter (where cause in ('complete', 'cancel', 'remove') or becomes = 'dead'), 0) as finished,
        coalesce(sum(count) filter (where was = 'running' and cause in ('cancel', 'remove')), 0) as stopped
      from (
        select was, becomes, cause, count from totals where queue = q.id
        union all
        select was, becomes, cause, count from moves where queue = q.id
      ) as each
    ) as m;
end $$;
