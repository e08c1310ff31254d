-- extend: a worker is still at its jobs.
-- In:  queue; lease in ms, null: the queue's; ids and fences, in step; progress: tagged texts, null where there is nothing new, as an
--      array. logs: as of `complete`.
-- Out: a text per claim: ok; held: another transaction has the job's row, and nothing was changed; stale; or cancelled
--      where this very claim was ended by a cancel that is still known.
-- Invariant: a lease is never shortened. Nothing waits for a row that is locked: a worker may fall silent while its own transaction is
--      about to complete one of its jobs, and all its other jobs would stay locked here with it, out of reach for a sweep.
--      Such a row is `held`: the next extension tells what became of it. Only the end of a claim locks a row like that. A push that
--      needs the job to stay (`meet`, `hold_parents`) locks its row `for key share`, which an extension passes.

create or replace function millpond.extend(
  queue text, lease bigint, ids uuid[], fences bigint[], progress text[] default null, logs text[] default null,
  now bigint default null
) returns text[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now      bigint := time_of(extend.now);
  v_queue    integer;
  v_lease    bigint;
  v_outcomes text[] := '{}';
  v_at       integer := 0;
  held       record;
begin
  perform set_config('synchronous_commit', 'off', true);
  select id, coalesce(extend.lease, queues.lease) into v_queue, v_lease from queues where name = extend.queue;
  for held in
    select given.* from unnest(extend.ids, extend.fences, extend.progress, extend.logs) as given(id, fence, progress, lines)
  loop
    update running set
      lease_until       = greatest(lease_until, v_now + v_lease),
      progress_encoding = case when held.progress is null then progress_encoding else encoding_of(held.progress) end,
      progress          = case when held.progress is null then progress else text_of(held.progress) end,
      progress_bytes    = case when held.progress is null then progress_bytes else bytes_of(held.progress) end,
      log               = case when held.lines is null then log else log_with(log, held.lines) end
    where ctid = (select ctid from running where id = held.id and fence = held.fence and queue + 0 = v_queue
      for no key update skip locked);
    -- Put in its place: appending would copy all of the array each time.
    v_at := v_at + 1;
    if found then v_outcomes[v_at] := 'ok';
    elsif exists (select from running where id = held.id and fence = held.fence and queue + 0 = v_queue) then
      v_outcomes[v_at] := 'held';
    elsif exists (select from retired where id = held.id and fence = held.fence and queue + 0 = v_queue and state = 'cancelled') then
      v_outcomes[v_at] := 'cancelled';
    else
      v_outcomes[v_at] := 'stale';
    end if;
  end loop;
  return v_outcomes;
end $$;
