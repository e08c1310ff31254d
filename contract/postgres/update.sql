-- update: scheduled and waiting jobs are changed.
-- In:  items: JSON list of id and any of data (a tagged text), priority, delay (ms), runAt (ms since 1970).
-- Out: a text per item: updated; or the state of a job that is neither scheduled nor waiting; null: unknown.
-- Invariant: it keeps its place. A job whose priority changes, or that becomes due, waits in the line of those that came back: the marks
--      of another may lie beyond its place. A claim passes over what is locked here, so `work` rings whatever has changed.

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
  v_state    text;
  was        waiting%rowtype;
  job        waiting%rowtype;
  item       record;
begin
  perform read_committed();
  for item in
    select given.* from rows from (
      json_to_recordset(update.items) as (id uuid, data text, priority smallint, delay bigint, "runAt" bigint)
    ) with ordinality as given(id, data, priority, delay, run_at, nth) order by id, nth
  loop
    loop
      select * into was from waiting where id = item.id for update;
      exit when found;
      select state into v_state from jobs where id = item.id;
      -- Else it has come back meanwhile.
      exit when v_state is null or v_state not in ('scheduled', 'waiting');
    end loop;
    if was.id is null then
      v_outcomes[item.nth] := v_state;
      continue;
    end if;
    job := was;
    job.priority := coalesce(item.priority, job.priority);
    if item.delay is not null or item.run_at is not null then
      job.due_at := greatest(v_now, coalesce(item.run_at, v_now + item.delay));
      job.state := case when job.due_at > v_now then 'scheduled' else 'waiting' end;
    end if;
    perform check_job(job.priority, job.due_at, null, null, null, null, 1, null);
    if item.data is not null then
      job.encoding := encoding_of(item.data);
      job.data := text_of(item.data);
      job.data_bytes := bytes_of(item.data);
    end if;
    if (job.state, job.priority) <> (was.state, was.priority) then
      if was.state = 'waiting' and is_milestone(was.line, was.place) then perform advance(was.queue, was.line > 0); end if;
      job.line := case when job.state = 'scheduled' then 0 else line_back(job.queue) end;
    end if;
    update waiting set due_at = job.due_at, state = job.state, priority = job.priority, line = job.line, encoding = job.encoding,
      data = job.data,
      data_bytes = job.data_bytes where id = job.id;
    if was.line = -1 or job.line = -1 then
      insert into arrivals (queue, groups) values (job.queue, array[coalesce(job."group", '')]);
    end if;
    -- Also where both are the same: those who cannot LISTEN see that something came.
    insert into moves (queue, segment, was, becomes, cause, count) values (job.queue, -1, was.state, job.state, 'update', 1);
    v_ring := v_ring || (select 'work:' || name from queues where id = job.queue);
    v_outcomes[item.nth] := 'updated';
  end loop;
  perform ring_all(v_ring);
  return v_outcomes;
end $$;
