-- configure: creates a queue or changes its settings.
-- In:  queue; capacity (applied if set_capacity; null: no limit); keep_done, keep_dead in ms and paused (null: unchanged).
-- Invariant: what is not given stays. With nothing but the queue's name it does nothing: a name alone makes no queue.

create or replace function millpond.configure(
  queue text, set_capacity boolean default false, capacity bigint default null, keep_done bigint default null,
  keep_dead bigint default null, paused boolean default null
) returns void
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_queue integer;
begin
  if not configure.set_capacity and configure.keep_done is null and configure.keep_dead is null and configure.paused is null then return; end if;
  -- Until this is over the queue is not removed.
  perform enter(true);
  v_queue := queue_of(configure.queue);
  update queues set
    capacity  = case when configure.set_capacity then configure.capacity else queues.capacity end,
    keep_done = coalesce(configure.keep_done, queues.keep_done),
    keep_dead = coalesce(configure.keep_dead, queues.keep_dead),
    paused    = coalesce(configure.paused, queues.paused)
  where id = v_queue;
  -- Either may be what someone waits for: a raised capacity, or the end of a pause.
  if configure.paused = false then perform ring_work(configure.queue, true); end if;
end $$;

-- make_queue: a queue comes into being, with default settings.
-- In:  queue. To be called before a push in a transaction that may last: others that push to a queue which that has made wait for its end.
create or replace function millpond.make_queue(queue text) returns void
language plpgsql security definer set search_path = millpond, pg_temp
as $$
begin
  perform enter(true);
  perform queue_of(make_queue.queue);
end $$;
