-- outcomes: what has become of jobs, without their data.
-- In:  ids; listener: who wants to be notified when a job ends in the queues of those that go on; or null.
-- Out: per id JSON, or null where the job is unknown, in the order of ids; `result` is a tagged text. Ends behind the job with which
--      results and errors reach 8 MiB.

create or replace function millpond.outcomes(ids uuid[], listener text default null) returns setof json
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_id uuid;
  v_outcome json;
  v_bytes bigint := 0;
begin
  if outcomes.listener is not null then
    perform set_config('synchronous_commit', 'off', true);
    insert into sleepers (queue, kind, listener)
    select name, 'finished', outcomes.listener from queues where id in (
      select queue from waiting where id = any (outcomes.ids) union select queue from running where id = any (outcomes.ids))
    on conflict do nothing;
  end if;
  foreach v_id in array outcomes.ids loop
    v_outcome := (
      select json_build_object('id', id, 'queue', queue, 'state', state, 'attempt', attempt, 'attempts', attempts, 'error', error,
        'result', body_of(result_encoding, result, result_bytes))
      from jobs where id = v_id);
    v_bytes := v_bytes + coalesce(octet_length(v_outcome::text), 0);
    return next v_outcome;
    exit when v_bytes >= 8388608;
  end loop;
end $$;
