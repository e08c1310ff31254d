-- configure: creates a queue or changes its settings.
-- In:  queue; capacity (applied if set_capacity; null: no limit); keep_done, keep_dead in ms and paused (null: unchanged).
-- Invariant: what is not given stays.

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
  v_queue integer := queue_of(configure.queue);
begin
  update queues set
    capacity  = case when configure.set_capacity then configure.capacity else queues.capacity end,
    keep_done = coalesce(configure.keep_done, queues.keep_done),
    keep_dead = coalesce(configure.keep_dead, queues.keep_dead),
    paused    = coalesce(configure.paused, queues.paused)
  where id = v_queue;
  -- Either may be what someone waits for: a raised capacity, or the end of a pause.
  if configure.paused = false then perform ring_work(configure.queue, true); end if;
end $$;
