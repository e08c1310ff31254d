-- workers: who works.
-- heartbeat
-- In:  workers: JSON list of id, queue, host, pid, slots, busy, lanes; gone: ids of workers that were closed. lanes: a list
--      of minPriority and reserve, or null.
-- Out: per worker, in their order, whether there is such a queue.
-- workers
-- In:  queue, null: of all.
-- Out: JSON per worker that was heard of in the last minute: the same, and since, seen and silence; by since, id and queue.
-- Invariant: heartbeats wait for nobody but each other. A queue whose row is in use is told of by the next one.

-- How long a worker that is silent counts, in ms.
create or replace function millpond.longest_silence() returns bigint
language sql immutable as $$ select 60000::bigint $$;

create or replace function millpond.heartbeat(workers json, gone text[] default '{}', now bigint default null) returns boolean[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now bigint := time_of(heartbeat.now);
begin
  perform set_config('synchronous_commit', 'off', true);
  delete from workers where (id, queue) in (
    select id, queue from workers where id = any (heartbeat.gone) order by id, queue for update);
  insert into workers as known (id, queue, host, pid, slots, busy, lanes, since, seen)
  select distinct on (told.id, told.queue) told.id, told.queue, told.host, told.pid, told.slots, told.busy,
    case when json_typeof(told.lanes) = 'array' then told.lanes end, v_now, v_now
  from json_to_recordset(heartbeat.workers)
    as told(id text, queue text, host text, pid integer, slots integer, busy integer, lanes json)
  -- In one order for all, so that two at once cannot wait for each other.
  order by told.id, told.queue
  on conflict (id, queue) do update set host = excluded.host, pid = excluded.pid, slots = excluded.slots, busy = excluded.busy,
    lanes = excluded.lanes, seen = excluded.seen,
    since = case when known.seen + longest_silence() < excluded.seen then excluded.since else known.since end;
  update queues set heard_at = v_now where ctid = any (array(
    select ctid from queues where name = any (array(select told ->> 'queue' from json_array_elements(heartbeat.workers) as told))
    for no key update skip locked));
  return array(
    select exists (select from queues where name = told ->> 'queue')
    from json_array_elements(heartbeat.workers) with ordinality as each(told, nth) order by nth);
end $$;

create or replace function millpond.workers(queue text default null, now bigint default null) returns setof json
language sql stable security definer set search_path = millpond, pg_temp
as $$
  select json_build_object('id', w.id, 'queue', w.queue, 'host', w.host, 'pid', w.pid, 'slots', w.slots, 'busy', w.busy, 'lanes', w.lanes,
    'since', w.since, 'seen', w.seen, 'silence', greatest(0, time_of(workers.now) - w.seen))
  from millpond.workers as w
  where (workers.queue is null or w.queue = workers.queue) and w.seen + longest_silence() >= time_of(workers.now)
  order by w.since, w.id, w.queue
$$;

-- For the sweep.
create or replace function millpond.forget_workers(p_now bigint) returns void
language sql as $$
  delete from millpond.workers where ctid = any (array(
    select ctid from millpond.workers where seen + millpond.longest_silence() < p_now for update skip locked))
$$;
