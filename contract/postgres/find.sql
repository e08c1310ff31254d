-- find: all there is to know about jobs.
-- In:  ids.
-- Out: JSON per job that is known, in no particular order; bodies are tagged texts.

-- A job's `remember`, as records have it.
create or replace function millpond.unique_of(p_remember bigint) returns json
language sql immutable parallel safe as $$
  select case when p_remember is not null then
    json_build_object('for', abs(p_remember), 'since', case when p_remember < 0 then 'push' else 'end' end) end
$$;

create or replace function millpond.record_of(j millpond.all_jobs) returns json
language sql stable as $$
  select json_build_object(
    'id', j.id, 'queue', (select name from millpond.queues where id = j.queue), 'state', j.state, 'priority', j.priority,
    'attempt', j.attempt, 'attempts', j.attempts, 'fence', j.fence,
    'key', j.key, 'group', j."group", 'cost', j.cost, 'timeout', j.timeout, 'trace', j.trace, 'pushedAt', j.pushed_at,
    'dueAt', coalesce(j.follow_due, j.due_at),
    'startedAt', j.started_at, 'finishedAt', j.finished_at, 'worker', j.worker,
    'data', millpond.body_of(j.encoding, j.data, j.data_bytes),
    'progress', millpond.body_of(j.progress_encoding, j.progress, j.progress_bytes),
    'result', millpond.body_of(j.result_encoding, j.result, j.result_bytes),
    'error', j.error, 'log', j.log, 'unique', millpond.unique_of(j.remember), 'follows', j.follow_due is not null,
    'waitsFor', case when j.state = 'blocked' then (select waits_for from millpond.children where id = j.id) end,
    'onDead', case when j.state = 'blocked' then (select nullif(on_dead, 'cancel') from millpond.children where id = j.id) end,
    'journal', case when (select journals from millpond.queues where id = j.queue) then (
      select nullif(count, 0) from millpond.journals where place = j.place) end,
    'parked', case when j.state in ('blocked', 'scheduled', 'waiting') and (select journals from millpond.queues where id = j.queue) then (
      select parked from millpond.journals where place = j.place and park_fence = j.fence) end)
$$;

create or replace function millpond.find(ids uuid[]) returns setof json
language sql stable security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
  select j.record from unnest(find.ids) as given(id) cross join lateral (
    select record_of(one) as record from all_jobs as one where one.id = given.id offset 0
  ) as j
$$;
