-- configure: creates a queue or changes its settings.
-- In:  queue; capacity and timeout (applied if set_capacity, set_timeout; null: no limit); all others null: unchanged. Times in ms.
--      limits: JSON with any of running, rate, grouped, groupRunning, groupRate; those that are there are applied.
-- Invariant: what is not given stays. With nothing but the queue's name it does nothing: a name alone makes no queue.

create or replace function millpond.configure(
  queue text, set_capacity boolean default false, capacity bigint default null, keep_done bigint default null,
  keep_dead bigint default null, paused boolean default null, attempts integer default null, set_timeout boolean default false,
  timeout bigint default null, lease bigint default null, backoff_base bigint default null, backoff_factor double precision default null,
  backoff_max bigint default null, backoff_jitter double precision default null,
  limits jsonb default null
) returns void
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_queue  integer;
  v_before queues%rowtype;
  v_after  queues%rowtype;
begin
  if not configure.set_capacity and not configure.set_timeout and coalesce(configure.keep_done, configure.keep_dead, configure.attempts,
    configure.lease, configure.backoff_base, configure.backoff_max) is null
    and coalesce(configure.backoff_factor, configure.backoff_jitter) is null and configure.paused is null and configure.limits is null then return; end if;
  -- Until this is over the queue is not removed.
  perform enter(true);
  if configure.limits is not null then perform enter_limits(configure.queue, configure.limits); end if;
  v_queue := queue_of(configure.queue);
  select * into v_before from queues where id = v_queue for no key update;
  v_after := v_before;
  if configure.set_capacity then v_after.capacity := configure.capacity; end if;
  if configure.set_timeout then v_after.timeout := configure.timeout; end if;
  v_after.keep_done      := coalesce(configure.keep_done, v_before.keep_done);
  v_after.keep_dead      := coalesce(configure.keep_dead, v_before.keep_dead);
  v_after.paused         := coalesce(configure.paused, v_before.paused);
  v_after.attempts       := coalesce(configure.attempts, v_before.attempts);
  v_after.lease          := coalesce(configure.lease, v_before.lease);
  v_after.backoff_base   := coalesce(configure.backoff_base, v_before.backoff_base);
  v_after.backoff_factor := coalesce(configure.backoff_factor, v_before.backoff_factor);
  v_after.backoff_max    := coalesce(configure.backoff_max, v_before.backoff_max);
  v_after.backoff_jitter := coalesce(configure.backoff_jitter, v_before.backoff_jitter);
  -- Every process configures its queues when it begins: mostly nothing changes.
  if v_after is distinct from v_before then
    update queues set capacity = v_after.capacity, keep_done = v_after.keep_done, keep_dead = v_after.keep_dead, paused = v_after.paused,
      attempts = v_after.attempts, timeout = v_after.timeout, lease = v_after.lease, backoff_base = v_after.backoff_base,
      backoff_factor = v_after.backoff_factor, backoff_max = v_after.backoff_max, backoff_jitter = v_after.backoff_jitter
    where id = v_queue;
  end if;
  -- What is kept may be due sooner now.
  if (v_after.keep_done, v_after.keep_dead) is distinct from (v_before.keep_done, v_before.keep_dead) then
    update slots set look_at = null where look_at is not null;
  end if;
  if configure.limits is not null then perform set_limits(v_queue, configure.limits); end if;
  -- Any may be what someone waits for: a raised capacity or limit, or the end of a pause.
  if configure.paused = false or configure.limits is not null then perform ring('work', configure.queue); end if;
  if configure.set_capacity then perform ring('room', configure.queue); end if;
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
