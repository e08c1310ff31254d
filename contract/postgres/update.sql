-- update: blocked, scheduled and waiting jobs are changed.
-- In:  items: JSON list of id and any of data (a tagged text), priority, delay (ms), runAt (ms since 1970).
-- Out: a text per item: updated; or the state of a job that is neither blocked, scheduled nor waiting; null: unknown.
-- Invariant: it keeps its place. Of a follower, the due time is that from which it may start.
--      A job whose priority changes, or that becomes due, waits in the line of those that came back: the marks
--      of another may lie beyond its place. A claim passes over what is locked here, so `work` rings whatever has changed.

-- One job. Returns as `update` does.
create or replace function millpond.change_job(
  p_id uuid, p_data text, p_priority smallint, p_delay bigint, p_run_at bigint, p_now bigint
) returns text
language plpgsql as $$
declare
  v_state text;
  v_due   bigint;
  was     millpond.waiting%rowtype;
  job     millpond.waiting%rowtype;
begin
  loop
    select * into was from millpond.waiting where id = p_id for update;
    exit when found;
    select state into v_state from millpond.all_jobs where id = p_id;
    -- Else it has come back meanwhile.
    exit when v_state is null or v_state not in ('blocked', 'scheduled', 'waiting');
  end loop;
  if was.id is null then return v_state; end if;
  job := was;
  job.priority := coalesce(p_priority, job.priority);
  v_due := greatest(p_now, coalesce(p_run_at, p_now + p_delay));
  if p_run_at is null and p_delay is null then v_due := null;
  elsif job.follow_due is not null then job.follow_due := v_due;
  else
    job.due_at := v_due;
    if job.state <> 'blocked' then job.state := case when job.due_at > p_now then 'scheduled' else 'waiting' end; end if;
  end if;
  perform millpond.check_job(job.priority, coalesce(v_due, job.due_at), null, null, null, null, 1, null);
  if p_data is not null then
    job.encoding := millpond.encoding_of(p_data);
    job.data := millpond.text_of(p_data);
    job.data_bytes := millpond.bytes_of(p_data);
  end if;
  if (job.state, job.priority) <> (was.state, was.priority) then
    if was.state = 'waiting' and millpond.is_milestone(was.line, was.place) then perform millpond.advance(was.queue, was.line > 0); end if;
    job.line := case when job.state in ('blocked', 'scheduled') then 0 else millpond.line_back(job.queue) end;
  end if;
  update millpond.waiting set due_at = job.due_at, follow_due = job.follow_due, state = job.state, priority = job.priority,
    line = job.line, encoding = job.encoding, data = job.data, data_bytes = job.data_bytes where id = job.id;
  if was.line = -1 or job.line = -1 then
    insert into millpond.arrivals (queue, groups) values (job.queue, array[coalesce(job."group", '')]);
  end if;
  -- Also where both are the same: those who cannot LISTEN see that something came.
  insert into millpond.moves (queue, segment, was, becomes, cause, count) values (job.queue, -1, was.state, job.state, 'update', 1);
  return 'updated';
end $$;

create or replace function millpond.update(items json, now bigint default null) returns text[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now      bigint   := hold_time('due', update.now);
  v_outcomes text[]   := array_fill(null::text, array[json_array_length(update.items)]);
  v_ring     text[]   := '{}';
  item       record;
begin
  perform read_committed();
  for item in
    select given.* from rows from (
      json_to_recordset(update.items) as (id uuid, data text, priority smallint, delay bigint, "runAt" bigint)
    ) with ordinality as given(id, data, priority, delay, run_at, nth) order by id, nth
  loop
    v_outcomes[item.nth] := change_job(item.id, item.data, item.priority, item.delay, item.run_at, v_now);
    if v_outcomes[item.nth] = 'updated' then
      v_ring := v_ring || (select 'work:' || queues.name from waiting join queues on queues.id = waiting.queue where waiting.id = item.id);
    end if;
  end loop;
  perform ring_all(v_ring);
  return v_outcomes;
end $$;
