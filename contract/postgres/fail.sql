-- fail: claims' attempts failed.
-- In:  queue; failures: objects with id, fence, error (JSON as text), delay: ms until the next attempt; `backoff`: by the queue's
--      policy; null: none; log: new lines of its job's log, with a line feed between them; null: none.
-- Out: a text per failure: retry, dead or stale.
-- Invariant: dead when there is no delay or no attempt left. A dead one is not kept where keep_dead is 0.

-- min(max, base * factor^(attempt - 1)) * (1 - jitter * random); see vectors/backoff.json. Where the power would be past all bounds it
-- is not computed.
create or replace function millpond.backoff(p_policy millpond.queues, p_attempt integer) returns bigint
language sql volatile as $$
  select floor((1 - (p_policy).backoff_jitter * random()) * case
    when (p_policy).backoff_base = 0 then 0
    when (p_attempt - 1) * ln((p_policy).backoff_factor) > 600 then (p_policy).backoff_max
    else least((p_policy).backoff_max, (p_policy).backoff_base * power((p_policy).backoff_factor, p_attempt - 1))
  end)::bigint
$$;

create or replace function millpond.fail(queue text, failures json, now bigint default null) returns text[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now      bigint := hold_time('due', fail.now);
  v_queue    integer;
  v_policy   queues%rowtype;
  v_outcomes text[] := array_fill(''::text, array[json_array_length(fail.failures)]);
  v_ring     text[] := '{}';
  v_delay    bigint;
  v_counted  boolean;
  v_dead     uuid[] := '{}';
  held       record;
  job        running%rowtype;
begin
  select * into v_policy from queues where name = fail.queue;
  v_queue := v_policy.id;
  for held in
    select given.* from rows from (json_to_recordset(fail.failures) as (id uuid, fence bigint, error text, delay text, log text))
      with ordinality
      as given(id, fence, error, delay, lines, nth) order by id
  loop
    delete from running where id = held.id and fence = held.fence and queue + 0 = v_queue returning * into job;
    if not found then
      v_outcomes[held.nth] := 'stale';
      continue;
    end if;
    if held.lines is not null then job.log := log_with(job.log, held.lines); end if;
    job.error := case when octet_length(held.error) <= 1048576 then held.error
      else '{"code":"PayloadTooLarge","name":"MillpondError","message":"the error of the attempt has more than 1048576 bytes"}' end;
    if held.delay is null or job.attempt >= job.attempts then
      perform retire(job, 'dead', 'fail', v_now, v_policy.keep_dead);
      v_ring := v_ring || 'finished'::text;
      if job.line < 0 then v_ring := v_ring || 'work'::text; end if;
      v_dead := v_dead || held.id;
      v_outcomes[held.nth] := 'dead';
    else
      v_delay := case when held.delay = 'backoff' then backoff(v_policy, job.attempt) else greatest(held.delay::bigint, 0) end;
      job.due_at := v_now + v_delay;
      v_counted := job.line < 0;
      perform put_back(job, case when v_delay > 0 then 'scheduled' else 'waiting' end, 'fail');
      if v_delay < 1000 or v_counted then v_ring := v_ring || 'work'::text; end if;
      v_outcomes[held.nth] := 'retry';
    end if;
  end loop;
  perform ring(kind, fail.queue) from (select distinct unnest(v_ring) as kind) as due;
  if v_dead <> '{}' and has_children(v_queue) then perform ring_all(end_of(v_dead, 'dead', v_now)); end if;
  return v_outcomes;
end $$;
