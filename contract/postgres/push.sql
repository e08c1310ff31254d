-- push: stores jobs.
-- In:  for people and any driver `push`, one job in the caller's transaction. For libraries `push_list`, many jobs that differ in
--      id and data alone, and `push_jobs`, any jobs. `own`: the call is its whole transaction. `now`: null but in tests. `fresh`: the
--      ids were made for this very call, so that nobody knows them yet, and they are not looked for, which takes as long as to store a
--      dozen jobs. `again`: this very call was made before, and nobody knows what became of it: its ids are looked for, and a job that
--      has one of them counts as pushed. `listener`: who wants to be notified of room where the queue is full; or null.
-- Out: `push` the job's id, null where the queue is full; `push_jobs` one text per job: its outcome (pushed, existing, full), a
--      space, the id; `push_list` the same, null: all were pushed. `push`, if a parent is not known: MP005; if another job has the
--      key of one with `after`: MP007.
--      `push` answers data that is too large with MP002, and half of a surrogate pair with MP003; the others answer with 23514 for what
--      is too large.
-- Invariant: places follow the order of pushes, also within a call. An id or live key that is known stores nothing.
--      A transaction of the caller's in REPEATABLE READ or SERIALIZABLE does not see what others committed since it began. There a job
--      with a new id goes in, with a key too (a key taken meanwhile is a serialization failure, 40001); one with an id of the caller's,
--      or for a queue with a capacity, is refused. Nothing is read there that others change, so pushes do not fail each other's
--      transactions.

-- Takes note that jobs with places from here on may be stored by this transaction, whenever it may end: the marks of a queue
-- must not pass them before. Held as an advisory lock on the places' upper bits, and let go by the end of the transaction.
create or replace function millpond.enter(p_own boolean) returns void
language plpgsql as $$
begin
  if not p_own then
    -- The first push of a transaction covers all the later ones.
    if current_setting('millpond.entered', true) = 'millpond' then return; end if;
    perform set_config('millpond.entered', 'millpond', true);
  end if;
  perform pg_advisory_xact_lock_shared(hashtext('millpond'), millpond.block_of(last_value)) from millpond.place;
end $$;

-- The time, for jobs that may be scheduled: it is held until they are stored.
create or replace function millpond.enter_later(p_own boolean, p_now bigint) returns bigint
language plpgsql as $$
begin
  if not p_own then
    if current_setting('millpond.later', true) = 'millpond' then return millpond.time_of(p_now); end if;
    perform set_config('millpond.later', 'millpond', true);
  end if;
  return millpond.hold_time('due', p_now);
end $$;

-- The same rules as in every library, for whoever may call these functions: no job of theirs can harm a worker or a sweep.
create or replace function millpond.check_job(
  p_priority smallint, p_due bigint, p_attempts integer, p_timeout bigint, p_key text, p_group text, p_cost integer, p_trace text
) returns void
language plpgsql immutable as $$
begin
  if p_priority is null or p_priority not between 0 and 9 then
    raise exception 'InvalidOption: priority is 0 to 9' using errcode = '22023';
  elsif p_due is null or p_due not between 0 and 8640000000000000 then
    raise exception 'InvalidOption: delay or run_at is out of range' using errcode = '22023';
  elsif p_attempts not between 1 and 1000000 then
    raise exception 'InvalidOption: attempts is 1 to 1000000' using errcode = '22023';
  elsif p_timeout not between 1 and 8640000000000000 then
    raise exception 'InvalidOption: timeout is at least 1 ms' using errcode = '22023';
  elsif p_cost is null or p_cost not between 1 and 10000 then
    raise exception 'InvalidOption: cost is 1 to 10000' using errcode = '22023';
  elsif octet_length(p_key) not between 1 and 255 or octet_length(p_group) not between 1 and 255 then
    raise exception 'InvalidName: a key or group has 1 to 255 bytes' using errcode = '22023';
  elsif octet_length(p_trace) not between 1 and 512 then
    raise exception 'InvalidOption: trace is 1 to 512 characters' using errcode = '22023';
  end if;
end $$;

-- Whether what others have committed by now can be seen.
create or replace function millpond.sees_all() returns boolean
language sql stable as $$
  select current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
$$;

-- How many jobs a queue with a capacity has room for. Others that push to this queue wait until this transaction ends: only then is it
-- known how much room it took.
create or replace function millpond.room_in(p_queue integer, p_capacity bigint, p_own boolean) returns bigint
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtext('millpond room'), p_queue);
  if p_own and exists (select from millpond.moves where queue = p_queue offset 256) then perform millpond.add_up(p_queue); end if;
  return p_capacity - coalesce((select sum(count) from millpond.counts_of(p_queue) where state in ('blocked', 'scheduled', 'waiting')), 0);
end $$;

-- Locks the room of those of these queues that have a capacity, in one order for all: so that two calls for several queues cannot wait for
-- each other. To be called before the first `room_in`.
create or replace function millpond.enter_rooms(p_queues text[]) returns void
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtext('millpond room'), id) from (
    select id from millpond.queues where name = any (p_queues) and capacity is not null order by id offset 0
  ) as bounded;
end $$;

-- Notes that jobs were pushed, once for all of a queue and state. Returns the number of the note.
create or replace function millpond.note_pushed(p_queue integer, p_waiting integer, p_scheduled integer, p_blocked integer) returns bigint
language sql as $$
  with noted as (
    insert into millpond.moves (queue, segment, was, becomes, cause, count)
    select p_queue, -1, 'new', state, 'push', count
    from (values ('waiting', p_waiting), ('scheduled', p_scheduled), ('blocked', p_blocked)) as pushed(state, count)
    where count > 0
    returning id
  )
  select max(id) from noted
$$;

-- One push in some thousands adds up what was noted, as sweeps do: where nobody works, nobody sweeps, and `stats` reads every note that is
-- left. The last step of a call that is its own transaction and holds no queue's room, since others may wait for the totals.
create or replace function millpond.add_up_some(p_move bigint) returns void
language plpgsql as $$
begin
  if p_move & 1023 = 0 and pg_try_advisory_xact_lock(hashtext('millpond tidy'), 0) then
    perform setval('millpond.swept_moves', coalesce(millpond.add_up(null, last_value), last_value)) from millpond.swept_moves;
  end if;
end $$;

-- data: JSON texts, in step with the ids.
-- A call whose answer was lost may still be on its way when it is made again, and come in when its jobs have long been done. So whoever
-- makes it again notes that down, for an hour, and while such a note is there fresh ids are looked for as well.
create or replace function millpond.push_list(
  queue text, ids uuid[], data text[], priority smallint default 4, delay bigint default 0, run_at bigint default null,
  "group" text default null, attempts integer default null, timeout bigint default null, trace text default null,
  own boolean default true, now bigint default null, fresh boolean default false, again boolean default false,
  listener text default null, cost integer default 1
) returns text[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now      bigint  := case when push_list.delay > 0 or push_list.run_at is not null then enter_later(push_list.own, push_list.now)
    else time_of(push_list.now) end;
  v_due      bigint  := greatest(v_now, coalesce(push_list.run_at, v_now + push_list.delay));
  v_later    boolean := v_due > v_now;
  -- A claim that is notified then tells when.
  v_soon     boolean := v_due < v_now + 1000;
  v_state    text    := case when v_later then 'scheduled' else 'waiting' end;
  v_queue    integer;
  v_limit    bigint;
  v_room     bigint;
  v_attempts integer;
  v_timeout  bigint;
  v_limits   text;
  v_line     integer := 0;
  v_asleep   boolean;
  v_fresh    boolean := push_list.fresh and not push_list.again;
  v_doubt    boolean;
  v_fence    bigint  := case when v_fresh then 0 else removed_fence() end;
  v_new      uuid[]  := push_list.ids;
  v_known    uuid[];
  v_count    integer;
  v_move     bigint;
begin
  perform check_job(push_list.priority, v_due, push_list.attempts, push_list.timeout, null, push_list."group", push_list.cost,
    push_list.trace);
  if cardinality(push_list.ids) is distinct from cardinality(push_list.data) then
    raise exception 'InvalidOption: as many data as ids' using errcode = '22023';
  end if;
  perform enter(push_list.own);
  select q.id, q.capacity, q.attempts, q.timeout, q.limits into v_queue, v_limit, v_attempts, v_timeout, v_limits from queues as q
    where q.name = push_list.queue;
  if v_queue is null then
    v_queue := queue_of(push_list.queue);
    select q.capacity, q.attempts, q.timeout, q.limits into v_limit, v_attempts, v_timeout, v_limits from queues as q where q.id = v_queue;
  end if;
  if v_limit is not null and sees_all() then
    v_room := room_in(v_queue, v_limit, push_list.own);
  end if;
  if v_limit is not null and (v_room is null or v_room < cardinality(push_list.ids)) or not sees_all() then
    -- Who gets the last room has to be seen job by job.
    return push_jobs((
      select json_agg(json_build_object(
        'id', job.id, 'queue', push_list.queue, 'priority', push_list.priority, 'delay', push_list.delay,
        'runAt', push_list.run_at, 'group', push_list."group", 'attempts', push_list.attempts,
        'timeout', push_list.timeout, 'cost', push_list.cost, 'trace', push_list.trace, 'data', 'j' || job.data, 'fresh', push_list.fresh)
          order by job.at)
      from unnest(push_list.ids, push_list.data) with ordinality as job(id, data, at)
    ), push_list.own, push_list.now, push_list.again, push_list.listener);
  end if;
  if v_limits = 'groups' and not v_later then v_line := -1; end if;
  if v_soon then perform stir(push_list.queue); end if;
  if push_list.again then insert into repeats (at) values (v_now); end if;
  if v_fresh then
    -- Inserting without `on conflict` costs a third less.
    insert into waiting (place, pushed_at, due_at, timeout, id, queue, attempts, priority, cost, line, state, "group", trace,
      encoding, data)
    select nextval('place'), v_now, v_due, coalesce(push_list.timeout, v_timeout), job.id, v_queue,
      coalesce(push_list.attempts, v_attempts),
      push_list.priority, push_list.cost, v_line, v_state, push_list."group", push_list.trace, 'json', job.data
    from unnest(push_list.ids, push_list.data) as job(id, data);
  else
    with stored as (
      insert into waiting (place, pushed_at, due_at, timeout, id, queue, fence, attempts, priority, cost, line, state, "group", trace,
        encoding, data)
      select place, v_now, v_due, coalesce(push_list.timeout, v_timeout), job.id, v_queue, v_fence,
        coalesce(push_list.attempts, v_attempts),
        push_list.priority, push_list.cost, v_line, v_state, push_list."group", push_list.trace, 'json', job.data
      from (select *, nextval('place') as place from unnest(push_list.ids, push_list.data) as each(id, data) offset 0) as job
      -- In one order for all, as others may store the same ids.
      order by id, place on conflict do nothing
      returning id
    )
    select array_agg(id) into v_new from stored;
  end if;
  -- Only now, in a statement of its own: what others commit before they let go of an id is seen from here.
  v_count := coalesce(cardinality(v_new), 0);
  insert into moves (queue, segment, was, becomes, cause, count) values (v_queue, -1, 'new', v_state, 'push', v_count)
  returning exists (select from sleepers where sleepers.queue = push_list.queue and kind = 'work'), exists (select from repeats), id
  into v_asleep, v_doubt, v_move;
  if v_doubt or not v_fresh then
    v_known := known_ids(push_list.ids);
    if v_known is not null then
      delete from waiting where id = any (v_known) and id = any (v_new);
      v_new := array(select unnest(v_new) except select unnest(v_known));
      insert into moves (queue, segment, was, becomes, cause, count)
        values (v_queue, -1, 'new', v_state, 'push', cardinality(v_new) - v_count);
      v_count := cardinality(v_new);
    end if;
    if removed_fence() > v_fence then update waiting set fence = removed_fence() where id = any (v_new); end if;
    perform forget_links(v_new);
  end if;
  if v_line = -1 and v_count > 0 then
    insert into arrivals (queue, groups) values (v_queue, array[coalesce(push_list."group", '')]);
  end if;
  if v_asleep and v_count > 0 and v_soon then perform ring('work', push_list.queue, push_list.own); end if;
  if push_list.own and v_limit is null then perform add_up_some(v_move); end if;
  if push_list.again or v_count = cardinality(push_list.ids) then return null; end if;
  -- An id that comes twice is stored with its first job.
  return array(
    select case when id = any (v_new) and at = min(at) over (partition by id) then 'pushed ' else 'existing ' end || id
    from unnest(push_list.ids) with ordinality as given(id, at) order by at);
end $$;

-- jobs: objects as README.md lists them; data is a tagged text. For after, onDead and partOf see push-graph.sql.
create or replace function millpond.push_jobs(
  jobs json, own boolean default true, now bigint default null, again boolean default false, listener text default null
) returns text[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now      bigint  := case
    when push_jobs.own or exists (select from json_to_recordset(push_jobs.jobs) as given(delay bigint, "runAt" bigint) where delay > 0
      or "runAt" is not null)
    then enter_later(push_jobs.own, push_jobs.now) else time_of(push_jobs.now) end;
  v_sees     boolean := sees_all();
  v_fresh    boolean;
  v_fence    bigint  := removed_fence();
  v_doubt    boolean;
  v_outcomes text[]  := '{}';
  v_existing uuid;
  v_name     text;
  v_id       integer;
  v_queue    queues%rowtype;
  v_room     bigint;
  v_due      bigint;
  v_later    boolean;
  v_until    bigint;
  v_met      text;
  v_waits    boolean;
  v_follows  boolean;
  v_remember bigint;
  v_ring     text[] := '{}';
  v_count    integer;
  v_waiting  integer := 0;
  v_later_on integer := 0;
  v_blocked  integer := 0;
  v_move     bigint;
  v_bounded  boolean := false;
  v_queues   integer[] := '{}';
  v_groups   text[] := '{}';
  v_state    text;
  v_given    uuid[] := '{}';
  v_stands   uuid[] := '{}';
  v_noted    uuid[] := '{}';
  v_failed   uuid[] := '{}';
  v_linked   boolean := false;
  v_settled  boolean[];
  v_places   bigint[];
  v_taken    boolean[];
  v_holders  uuid[];
  v_parents  record;
  job        record;
begin
  perform enter(push_jobs.own);
  if push_jobs.again then insert into repeats (at) values (v_now); end if;
  v_doubt := v_sees and exists (select from repeats);
  if v_sees and json_array_length(push_jobs.jobs) > 1 then
    select settled, outcomes, places, taken, holders, coalesce(given, '{}'), coalesce(stands, '{}'), ring, move, bounded
    into v_settled, v_outcomes, v_places, v_taken, v_holders, v_given, v_stands, v_ring, v_move, v_bounded
    from push_set(push_jobs.jobs, push_jobs.own, v_now, push_jobs.again);
  end if;
  for job in
    select given.* from rows from (json_to_recordset(push_jobs.jobs) as (
      id uuid, queue text, priority smallint, delay bigint, "runAt" bigint, key text, "group" text, attempts integer,
      timeout bigint, trace text, data text, fresh boolean, cost integer, once json, after uuid[], "onDead" text, "partOf" uuid
    )) with ordinality as given(id, queue, priority, delay, "runAt", key, "group", attempts, timeout, trace, data, fresh, cost, once,
      after, "onDead", "partOf", nth) where v_settled[nth] is not true
  loop
    v_fresh := job.fresh is true and not push_jobs.again;
    if v_name is distinct from job.queue then
      perform note_pushed(v_id, v_waiting, v_later_on, v_blocked);
      v_waiting := 0;
      v_later_on := 0;
      v_blocked := 0;
      v_name := job.queue;
      v_id := queue_of(v_name);
      select * into v_queue from queues where id = v_id;
      v_room := null;
      if v_queue.capacity is not null and not v_sees then
        raise exception 'NotSupported: a push to a queue with a capacity needs a transaction in READ COMMITTED' using errcode = 'MP001';
      end if;
    end if;
    if not v_sees and not v_fresh then
      raise exception 'NotSupported: a push with an id of your own needs a transaction in READ COMMITTED' using errcode = 'MP001';
    end if;
    v_due := greatest(v_now, least(coalesce(job."runAt", v_now + coalesce(job.delay, 0)), v_now + (job.once ->> 'maxWait')::bigint));
    v_later := v_due > v_now;
    v_met := null;
    v_remember := null;
    if job.key is not null and job.once is not null then
      if not v_sees then
        raise exception 'NotSupported: unique, replace and follow need a transaction in READ COMMITTED' using errcode = 'MP001';
      end if;
      v_remember := remember_of(job.once -> 'unique');
    end if;
    perform check_job(job.priority, v_due, job.attempts, job.timeout, job.key, job."group", coalesce(job.cost, 1), job.trace);
    v_waits := coalesce(cardinality(job.after) > 0, false);
    v_existing := null;
    if v_sees and (v_doubt or not v_fresh) then
      select id into v_existing from waiting where id = job.id;
      if v_existing is null and known_ids(array[job.id]) is not null then v_existing := job.id; end if;
    end if;
    -- Taken before it is looked for: so even a transaction that does not see the one who has it knows of him.
    if v_existing is not null and v_taken[job.nth] then
      delete from keys where queue = v_queue.id and key = job.key and id = job.id;
      v_holders := array_replace(v_holders, job.id, null);
    end if;
    while v_existing is null and job.key is not null and v_taken[job.nth] is not true loop
      if v_holders[job.nth] is not null then
        v_existing := v_holders[job.nth];
        exit;
      end if;
      if v_taken is null or not exists (select from keys where queue = v_queue.id and key = job.key) then
        insert into keys (queue, key, id, memory) values (v_queue.id, job.key, job.id, key_memory(v_remember, v_now))
        on conflict do nothing;
        exit when found;
      end if;
      if job.once is not null and not v_waits then
        v_met := meet(v_queue.id, job.key, job.once, coalesce(job."runAt", v_now + coalesce(job.delay, 0)), v_now, job.data);
        exit when v_met like 'follows %';
        v_existing := split_part(v_met, ' ', 2);
      else
        select id, until into v_existing, v_until from keys where queue = v_queue.id and key = job.key;
        if v_until <= v_now then v_existing := null; end if;
      end if;
      exit when v_existing is null and take_key(v_queue.id, job.key, job.id, key_memory(v_remember, v_now), v_now + 1);
    end loop;
    if v_waits and v_existing <> job.id then
      v_outcomes[job.nth] := 'held ' || v_existing;
      continue;
    end if;
    v_follows := coalesce(v_met like 'follows %', false);
    v_later := v_later or v_follows;
    -- Only now: who waits for a key keeps nobody from the room.
    if v_existing is null and v_queue.capacity is not null and v_room is null then
      if not v_bounded then
        perform enter_rooms(array(select distinct queue from json_to_recordset(push_jobs.jobs) as given(queue text)));
      end if;
      v_room := room_in(v_queue.id, v_queue.capacity, push_jobs.own);
      v_bounded := true;
    end if;
    if v_existing is null and v_room <= 0 then
      if not v_follows then delete from keys where queue = v_queue.id and key = job.key; end if;
      v_holders := array_replace(v_holders, job.id, null);
      v_outcomes[job.nth] := 'full ' || job.id;
      if push_jobs.listener is not null then
        insert into sleepers (queue, kind, listener) values (v_name, 'room', push_jobs.listener) on conflict do nothing;
      end if;
      continue;
    end if;
    v_state := case when v_later then 'scheduled' else 'waiting' end;
    v_linked := v_existing is null and (cardinality(job.after) > 0 or job."partOf" is not null);
    if v_linked then
      select * into v_parents from look_at_parents(job.after, job."onDead", job."partOf", v_given, v_stands);
      if v_parents.orphan is not null then
        if not v_follows then delete from keys where queue = v_queue.id and key = job.key; end if;
        v_holders := array_replace(v_holders, job.id, null);
        v_outcomes[job.nth] := 'orphan ' || job.id || ' ' || v_parents.orphan;
        continue;
      end if;
      if v_parents.is_blocked then v_state := 'blocked'; end if;
    end if;
    if v_existing is null then
      insert into waiting (place, pushed_at, due_at, timeout, id, queue, fence, attempts, priority, cost, line, state, key, "group", trace,
        encoding, data, data_bytes, remember, follow_due)
      values (coalesce(v_places[job.nth], nextval('place')), v_now, case when v_follows then 281474976710655 else v_due end,
        coalesce(job.timeout, v_queue.timeout), job.id, v_queue.id, v_fence,
        coalesce(job.attempts, v_queue.attempts),
        job.priority, coalesce(job.cost, 1), case when v_queue.limits = 'groups' and v_state = 'waiting' then -1 else 0 end,
        v_state, job.key, job."group", job.trace,
        encoding_of(job.data), text_of(job.data), bytes_of(job.data), v_remember, case when v_follows then v_due end)
      on conflict do nothing;
      v_count := case when found then 1 else 0 end;
      if v_count = 0 or (v_sees and not v_fresh and known_ids(array[job.id]) is not null) then
        -- The same id was pushed by another at the same time.
        if v_count > 0 then delete from waiting where id = job.id; end if;
        if job.key is not null and not v_follows then delete from keys where queue = v_queue.id and key = job.key; end if;
        v_holders := array_replace(v_holders, job.id, null);
        v_existing := job.id;
      elsif v_follows then
        update keys set follower = job.id where queue = v_queue.id and key = job.key;
      end if;
      if v_existing is null and (v_doubt or not v_fresh) then
        if removed_fence() > v_fence then update waiting set fence = removed_fence() where id = job.id; end if;
        perform forget_links(array[job.id]);
      end if;
    end if;
    if v_existing <> job.id then
      select v_given || job.id, v_stands || v_existing into v_given, v_stands;
    end if;
    if v_met like 'replaced %' then
      v_outcomes[job.nth] := v_met;
      if v_name <> all (v_ring) then v_ring := v_ring || v_name; end if;
      continue;
    end if;
    if v_existing is not null then
      v_outcomes[job.nth] := case when push_jobs.again and v_existing = job.id then 'pushed ' else 'existing ' end || v_existing;
      continue;
    end if;
    v_outcomes[job.nth] := 'pushed ' || job.id;
    v_room := v_room - 1;
    if v_queue.limits = 'groups' and v_state = 'waiting' then
      v_queues := v_queues || v_queue.id;
      v_groups := v_groups || coalesce(job."group", '');
    end if;
    if v_state = 'blocked' then v_blocked := v_blocked + 1;
    elsif v_state = 'scheduled' then v_later_on := v_later_on + 1;
    else v_waiting := v_waiting + 1;
    end if;
    if v_linked then
      perform link(job.id, v_parents.open, v_parents.closed, job."onDead", v_parents.children, v_parents.failed, v_parents.became, v_now);
      v_noted := v_noted || v_parents.open;
      if cardinality(v_parents.children) > 0 then v_noted := v_noted || job.id; end if;
      if v_parents.failed is not null then
        v_failed := v_failed || job.id;
        v_room := v_room + 1;
      end if;
    end if;
    if v_state <> 'blocked' and v_due < v_now + 1000 and v_name <> all (v_ring) then v_ring := v_ring || v_name; end if;
  end loop;
  if v_queues <> '{}' then
    insert into arrivals (queue, groups)
    select arrived.id, array_agg(distinct arrived.name) from unnest(v_queues, v_groups) as arrived(id, name) group by arrived.id;
  end if;
  v_move := coalesce(note_pushed(v_id, v_waiting, v_later_on, v_blocked), v_move);
  if v_noted <> '{}' then perform note_parents(v_noted, v_outcomes); end if;
  -- Held: a child may be due later.
  if v_failed <> '{}' then perform ring_all(end_of(v_failed, 'cancelled', enter_later(push_jobs.own, push_jobs.now))); end if;
  foreach v_name in array v_ring loop
    -- Whoever fell asleep lately cannot be seen there.
    if v_sees then perform ring('work', v_name, push_jobs.own);
    else perform pg_notify('millpond', 'work:' || v_name);
    end if;
  end loop;
  if push_jobs.own and not v_bounded then perform add_up_some(v_move); end if;
  return v_outcomes;
end $$;
