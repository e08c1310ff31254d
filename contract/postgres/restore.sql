-- restore: jobs come back as they were.
-- In:  records: JSON list of records, as from find:
--      select millpond.restore((select json_agg(r) from millpond.find('{019b0000-...}') as r))
-- Out: a text per record: restored; or existing: the id is known, or a live job has the key.
-- Invariant: their places are behind those of all other jobs, in the order of the input. Each first takes its id in `waiting`, as a push
--      does. So of a push and a restore of one id at the same time, the later one finds the other's.

-- Jobs that are all scheduled or waiting, in few statements; their queues are there. False: an id or a key is known already, and nothing
-- was stored.
create or replace function millpond.restore_live(p_records json, p_now bigint) returns boolean
language plpgsql as $$
#variable_conflict use_column
declare
  v_jobs    millpond.waiting[];
  v_ids     uuid[];
  v_removed bigint := millpond.removed_fence();
  v_since   bigint;
begin
  v_jobs := array(
    select row(
      nextval('millpond.place'), coalesce(pushed_at, p_now), due_at, timeout, started_at, id, queue_id,
      greatest(coalesce(fence, 0), v_removed), coalesce(attempt, 0), attempts, priority, coalesce(cost, 1),
      case when limits = 'groups' and state = 'waiting' then -1 else 0 end,
      state, key, "group", trace, worker, millpond.encoding_of(data), millpond.text_of(data), millpond.bytes_of(data),
      millpond.encoding_of(progress), millpond.text_of(progress), millpond.bytes_of(progress), error,
      case when log is not null then millpond.log_with(null, log) end, millpond.remember_of(uniqueness), null, null
    )::millpond.waiting
    from (
      select given.*, queues.id as queue_id, queues.limits
      from rows from (json_to_recordset(p_records) as (
        id uuid, queue text, state text, priority smallint, attempt integer, attempts integer, fence bigint, key text, "group" text,
        cost integer, timeout bigint, trace text, "pushedAt" bigint, "dueAt" bigint, "startedAt" bigint, worker text, data text,
        progress text, error text, log text, "unique" json
      )) with ordinality as given(
        id, queue, state, priority, attempt, attempts, fence, key, "group", cost, timeout, trace, pushed_at, due_at, started_at, worker,
        data, progress, error, log, uniqueness, nth
      ) join millpond.queues on queues.name = given.queue
      order by nth
    ) as each
  );
  if exists (select from unnest(v_jobs) where fence not between 0 and 9007199254740000 or attempt not between 0 and 1000000000
    or least(pushed_at, started_at) < 0 or greatest(pushed_at, started_at) > 8640000000000000) then
    raise exception 'InvalidOption: fence, attempt or a time of a restored job is out of range' using errcode = '22023';
  end if;
  perform millpond.check_job(priority, due_at, attempts, timeout, key, "group", cost, trace) from unnest(v_jobs);
  v_ids := array(select id from unnest(v_jobs));
  begin
    insert into millpond.keys (queue, key, id, memory)
    select queue, key, id, millpond.key_memory(remember, pushed_at) from unnest(v_jobs) where key is not null order by queue, key;
    insert into millpond.waiting select job.* from unnest(v_jobs) as job;
    -- Only now, in a statement of its own: what others commit before they let go of an id is seen from here.
    if millpond.known_ids(v_ids) is not null then raise unique_violation; end if;
  exception when unique_violation then
    return false;
  end;
  v_since := millpond.removed_fence();
  perform millpond.forget_links(v_ids);
  if v_since > v_removed then update millpond.waiting set fence = v_since where id = any (v_ids) and fence < v_since; end if;
  insert into millpond.arrivals (queue, groups)
  select queue, array_agg(coalesce("group", '') order by place) from unnest(v_jobs) where line = -1 group by queue;
  insert into millpond.moves (queue, segment, was, becomes, cause, count)
  select queue, -1, 'new', state, 'restore', count(*) from unnest(v_jobs) group by queue, state;
  perform millpond.ring_all(array(
    select distinct 'work:' || queues.name from unnest(v_jobs) as job join millpond.queues on queues.id = job.queue
    where job.due_at < p_now + 1000
  ));
  return true;
end $$;

create or replace function millpond.restore(records json, now bigint default null) returns text[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now      bigint  := hold_time('due', restore.now);
  v_queues   text[];
  v_soon     boolean;
  v_live     boolean;
  v_steps    boolean;
  v_outcomes text[]  := '{}';
  v_ring     text[]  := '{}';
  v_segment  smallint;
  v_segments smallint[] := '{}';
  v_finished bigint;
  v_id       integer;
  v_taken    boolean;
  v_follows  boolean;
  v_parents  record;
  v_ended    ended[] := '{}';
  v_queue    queues%rowtype;
  job        waiting%rowtype;
  given      record;
begin
  perform read_committed();
  perform enter(true);
  -- In one pass: parsing the list takes most of the time.
  select array_agg(distinct queue), bool_or(state = 'scheduled' and "dueAt" <= v_now + 1000),
    bool_and(coalesce(state in ('scheduled', 'waiting'), false) and not coalesce(follows, false)),
    bool_or(parked is not null or json_array_length(entries) > 0)
  into v_queues, v_soon, v_live, v_steps
  from json_to_recordset(restore.records) as each(queue text, state text, "dueAt" bigint, follows boolean, parked text, entries json);
  -- Jobs that were due long ago lie before the marks of the sweeps. So the next sweep begins at the beginning, and none moves marks before.
  if v_soon then
    perform pg_advisory_xact_lock(hashtext('millpond sweep'), 0);
    perform setval('swept_whole', 0);
  end if;
  if v_live then
    perform queue_of(name) from unnest(v_queues) as name;
    if restore_live(restore.records, v_now) then
      v_outcomes := array_fill('restored'::text, array[json_array_length(restore.records)]);
      if v_steps then perform restore_journals(restore.records, v_outcomes); end if;
      return v_outcomes;
    end if;
  end if;
  for given in
    select * from json_to_recordset(restore.records) as each(
      id uuid, queue text, state text, priority smallint, attempt integer, attempts integer, fence bigint, key text, "group" text,
        cost integer,
      timeout bigint, trace text, "pushedAt" bigint, "dueAt" bigint, "startedAt" bigint, "finishedAt" bigint, worker text,
      data text, progress text, result text, error text, log text, "unique" json, follows boolean, after uuid[], "onDead" text)
  loop
    if given.state is null or given.state = 'running' or given.state <> all (states()) then
      raise exception 'InvalidOption: a job that is restored is in any state but running' using errcode = '22023';
    end if;
    if given.fence not between 0 and 9007199254740000 or given.attempt not between 0 and 1000000000
      or least(given."pushedAt", given."startedAt", given."finishedAt") < 0
      or greatest(given."pushedAt", given."startedAt", given."finishedAt") > 8640000000000000 then
      raise exception 'InvalidOption: fence, attempt or a time of a restored job is out of range' using errcode = '22023';
    end if;
    perform check_job(given.priority, given."dueAt", given.attempts, given.timeout, given.key, given."group", coalesce(given.cost, 1),
      given.trace);
    v_id := queue_of(given.queue);
    -- Before a key is taken: the job that is there may have it, live or remembered.
    if exists (select from waiting where id = given.id) or known_ids(array[given.id]) is not null then
      v_outcomes := v_outcomes || 'existing'::text;
      continue;
    end if;
    select * into v_queue from queues where id = v_id;
    job := null;
    v_taken := false;
    job.place := nextval('place');
    job.pushed_at := coalesce(given."pushedAt", v_now);
    job.due_at := given."dueAt";
    job.timeout := given.timeout;
    job.started_at := given."startedAt";
    job.id := given.id;
    job.queue := v_queue.id;
    job.fence := coalesce(given.fence, 0);
    job.attempt := coalesce(given.attempt, 0);
    job.attempts := given.attempts;
    job.priority := given.priority;
    job.cost := coalesce(given.cost, 1);
    job.line := case when v_queue.limits = 'groups' and given.state = 'waiting' then -1 else 0 end;
    job.state := given.state;
    job.key := given.key;
    job."group" := given."group";
    job.trace := given.trace;
    job.worker := given.worker;
    job.encoding := encoding_of(given.data);
    job.data := text_of(given.data);
    job.data_bytes := bytes_of(given.data);
    job.progress_encoding := encoding_of(given.progress);
    job.progress := text_of(given.progress);
    job.progress_bytes := bytes_of(given.progress);
    job.error := given.error;
    job.log := case when given.log is not null then log_with(null, given.log) end;
    job.remember := remember_of(given."unique");
    if job.state = 'blocked' then
      select * into v_parents from look_at_parents(given.after, given."onDead", null, p_restored => true);
      if not v_parents.is_blocked then
        job.state := case when job.due_at > v_now then 'scheduled' else 'waiting' end;
        job.due_at := greatest(job.due_at, v_now);
        job.line := case when v_queue.limits = 'groups' and job.state = 'waiting' then -1 else 0 end;
      end if;
    end if;
    v_follows := false;
    if job.key is not null and job.state in ('blocked', 'scheduled', 'waiting') then
      v_taken := take_key(job.queue, job.key, job.id, key_memory(job.remember, job.pushed_at), 9223372036854775807);
    end if;
    if job.key is not null and job.state in ('blocked', 'scheduled', 'waiting') and not v_taken then
      update keys set follower = job.id
      where queue = job.queue and key = job.key and follower is null and given.follows and job.state = 'scheduled';
      v_follows := found;
      if v_follows then
        job.follow_due := job.due_at;
        job.due_at := 281474976710655;
      else
        v_outcomes := v_outcomes || 'existing'::text;
        continue;
      end if;
    end if;
    insert into waiting select job.* on conflict do nothing;
    -- Only now, in a statement of its own: what others commit before they let go of an id is seen from here.
    if not found or known_ids(array[job.id]) is not null then
      delete from waiting where id = job.id and place = job.place;
      if v_taken then delete from keys where queue = job.queue and key = job.key and id = job.id; end if;
      if v_follows then update keys set follower = null where queue = job.queue and key = job.key and follower = job.id; end if;
      v_outcomes := v_outcomes || 'existing'::text;
      continue;
    end if;
    job.fence := greatest(coalesce(given.fence, 0), removed_fence());
    update waiting set fence = job.fence where id = job.id and fence <> job.fence;
    perform forget_links(array[job.id]);
    v_segment := -1;
    if job.state not in ('done', 'dead', 'cancelled') then
      if job.line = -1 then insert into arrivals (queue, groups) values (job.queue, array[coalesce(job."group", '')]); end if;
      if job.state <> 'blocked' and job.due_at < v_now + 1000 then v_ring := v_ring || ('work:' || given.queue); end if;
    else
      delete from waiting where id = job.id;
      v_finished := coalesce(given."finishedAt", v_now);
      if job.state = 'done' then
        v_segment := current_segment();
        insert into done
        select job.*, v_finished, v_segment, encoding_of(given.result), text_of(given.result), bytes_of(given.result);
      else insert into retired select job.*, v_finished;
      end if;
      v_segments := v_segments || v_segment;
      if job.key is not null and given.state <> 'cancelled' then perform remember(job, v_finished, v_now); end if;
    end if;
    insert into moves (queue, segment, was, becomes, cause, count) values (job.queue, v_segment, 'new', job.state, 'restore', 1);
    if given.state = 'blocked' then
      perform link(job.id, v_parents.open, v_parents.closed, given."onDead", '{}', v_parents.failed, v_parents.became, v_now);
      perform note_parents(v_parents.open, '{}', true);
    elsif job.state in ('done', 'dead', 'cancelled') then v_ended := v_ended || row(null, job.id, given.state)::ended;
    end if;
    v_outcomes := v_outcomes || 'restored'::text;
  end loop;
  if v_steps then perform restore_journals(restore.records, v_outcomes); end if;
  -- What is kept in them may be due sooner now. All of them: as in configure.
  update segments set look_at = null where segment = any (v_segments);
  for given in select state, array_agg(parent) as ids from unnest(v_ended) group by state order by state loop
    v_ring := v_ring || end_of(given.ids, given.state, v_now);
  end loop;
  perform ring_all(v_ring);
  return v_outcomes;
end $$;
