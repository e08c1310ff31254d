-- push: stores jobs.
-- In:  for people and any driver `push`, one job in the caller's transaction. For libraries `push_list`, many jobs that differ in
--      id and data alone, and `push_jobs`, any jobs. `own`: the call is its whole transaction. `now`: null but in tests. `fresh`: the
--      ids were made for this very call, so that nobody knows them yet, and they are not looked for, which takes as long as to store a
--      dozen jobs. `again`: this call was made before with `fresh`, and nobody knows what became of it.
-- Out: `push` the job's id, null where the queue is full; `push_jobs` one text per job: its outcome (pushed, existing, full), a
--      space, the id; `push_list` the same, null: all were pushed.
-- Invariant: places follow the order of pushes, also within a call. An id or live key that is known stores nothing.

-- Takes note that jobs with places from here on may be stored by this transaction, whenever it may end: the marks of a queue
-- must not pass them before. Held as an advisory lock on the places' upper bits, and let go by the end of the transaction.
-- A call of a library's is not to wait for a lock until its caller gives up, and then be stored after all.
create or replace function millpond.enter(p_own boolean) returns void
language plpgsql as $$
begin
  if not p_own then
    -- The first push of a transaction covers all the later ones.
    if current_setting('millpond.entered', true) = 'millpond' then return; end if;
    perform set_config('millpond.entered', 'millpond', true);
  elsif current_setting('lock_timeout') = '0' then
    perform set_config('lock_timeout', '15s', true);
  end if;
  perform pg_advisory_xact_lock_shared(hashtext('millpond'), (last_value >> 12)::integer) from millpond.place;
end $$;

-- Of these ids, those that jobs beyond `waiting` have; null: none. A job moves in one commit, so whoever looks after storing the id
-- misses none. Ids rise with time, so those of a call mostly lie within 16 ms: one look between the least and the greatest hardly ever
-- finds anything, and only where it does each id is looked up. Not so between ids that lie apart, where many dead rows may be.
create or replace function millpond.known_ids(p_ids uuid[]) returns uuid[]
language plpgsql stable as $$
declare
  v_least    uuid := p_ids[1];
  v_greatest uuid := v_least;
  v_apart    boolean;
  v_id       uuid;
  v_slot     smallint;
  v_known    uuid[];
begin
  -- A loop of these takes less than a statement, and nearly always nothing is assigned but the greatest.
  foreach v_id in array p_ids loop
    if v_id > v_greatest then v_greatest := v_id;
    elsif v_id < v_least then v_least := v_id;
    end if;
  end loop;
  v_apart := left(v_least::text, 12) <> left(v_greatest::text, 12);
  if v_apart or exists (select from millpond.running where id between v_least and v_greatest) then
    v_known := array(select id from millpond.running where id = any (p_ids));
  end if;
  if v_apart or exists (select from millpond.retired where id between v_least and v_greatest) then
    v_known := v_known || array(select id from millpond.retired where id = any (p_ids));
  end if;
  -- One slot at a time, so that no other is even opened.
  for v_slot in select slot from millpond.slots where used and (greatest is null or v_least <= greatest) loop
    if v_apart or exists (select from millpond.done where slot = v_slot and id between v_least and v_greatest) then
      v_known := v_known || array(select id from millpond.done where slot = v_slot and id = any (p_ids));
    end if;
  end loop;
  return nullif(v_known, '{}');
end $$;

-- data: JSON texts, joined by U+001F, which no JSON text holds.
-- A call whose answer was lost may still be on its way when it is made again, and come in when its jobs have long been done. So whoever
-- makes it again notes that down, for an hour, and while such a note is there fresh ids are looked for as well.
create or replace function millpond.push_list(
  queue text, ids uuid[], data text, priority smallint default 4, delay bigint default 0, run_at bigint default null,
  "group" text default null, attempts integer default 10, timeout bigint default null, trace text default null,
  own boolean default true, now bigint default null, fresh boolean default false, again boolean default false
) returns text[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now    bigint  := time_of(push_list.now);
  v_due    bigint  := greatest(v_now, coalesce(push_list.run_at, v_now + push_list.delay));
  v_later  boolean := v_due > v_now;
  v_queue  integer;
  v_limit  bigint;
  v_asleep boolean;
  v_doubt  boolean;
  v_new    uuid[]  := push_list.ids;
  v_known  uuid[];
  v_count  integer;
begin
  perform enter(push_list.own);
  if push_list.again then insert into repeats (at) values (v_now); end if;
  select id, capacity into v_queue, v_limit from queues where name = push_list.queue;
  if not found then
    v_queue := queue_of(push_list.queue);
  elsif v_limit is not null then
    -- Whether there is room has to be seen job by job.
    return push_jobs((
      select json_agg(json_build_object(
        'id', job.id, 'queue', push_list.queue, 'priority', push_list.priority, 'delay', push_list.delay,
        'runAt', push_list.run_at, 'group', push_list."group", 'attempts', push_list.attempts,
        'timeout', push_list.timeout, 'trace', push_list.trace, 'data', 'j' || job.data) order by job.at)
      from unnest(push_list.ids, string_to_array(push_list.data, E'\x1f')) with ordinality as job(id, data, at)
    ), push_list.own, push_list.now);
  elsif current_setting('transaction_isolation') <> 'read committed' then
    perform keep_queue(v_queue);
  end if;
  if push_list.fresh then
    -- Inserting without `on conflict` costs a third less.
    insert into waiting (seq, pushed_at, due_at, timeout, id, queue, attempts, priority, scheduled, "group", trace, encoding, data)
    select nextval('place'), v_now, v_due, push_list.timeout, job.id, v_queue, push_list.attempts, push_list.priority, v_later,
      push_list."group", push_list.trace, 'json', job.data
    from unnest(push_list.ids, string_to_array(push_list.data, E'\x1f')) as job(id, data);
  else
    with stored as (
      insert into waiting (seq, pushed_at, due_at, timeout, id, queue, attempts, priority, scheduled, "group", trace, encoding, data)
      select nextval('place'), v_now, v_due, push_list.timeout, job.id, v_queue, push_list.attempts, push_list.priority, v_later,
        push_list."group", push_list.trace, 'json', job.data
      from unnest(push_list.ids, string_to_array(push_list.data, E'\x1f')) as job(id, data)
      on conflict do nothing
      returning id
    )
    select array_agg(id) into v_new from stored;
  end if;
  -- Only now: what others commit before they let go of an id is seen from here.
  select exists (select from sleepers where sleepers.queue = push_list.queue), exists (select from repeats) into v_asleep, v_doubt;
  if v_doubt or not push_list.fresh then
    v_known := known_ids(push_list.ids);
    if v_known is not null then
      delete from waiting where id = any (v_known) and id = any (v_new);
      v_new := array(select unnest(v_new) except select unnest(v_known));
    end if;
  end if;
  v_count := coalesce(cardinality(v_new), 0);
  if v_count > 0 then
    if v_later then insert into counts (queue, scheduled) values (v_queue, v_count);
    else
      insert into counts (queue, waiting, ready) values (v_queue, v_count, v_count);
      if v_asleep then perform ring_work(push_list.queue, push_list.own); end if;
    end if;
  end if;
  if v_count = cardinality(push_list.ids) then return null; end if;
  -- An id that comes twice is stored with its first job.
  return array(
    select case when id = any (v_new) and at = min(at) over (partition by id) then 'pushed ' else 'existing ' end || id
    from unnest(push_list.ids) with ordinality as given(id, at) order by at);
end $$;

-- jobs: objects with id queue priority delay runAt key group attempts timeout trace data; data is a tagged text.
create or replace function millpond.push_jobs(jobs json, own boolean default true, now bigint default null) returns text[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now      bigint := time_of(push_jobs.now);
  v_outcomes text[] := '{}';
  v_existing uuid;
  v_queue    integer;
  v_name     text;
  v_capacity bigint;
  v_room     bigint;
  v_due      bigint;
  v_later    boolean;
  v_ring     text[] := '{}';
  v_count    integer;
  v_waiting  bigint := 0;
  v_schedule bigint := 0;
  job        record;
begin
  perform enter(push_jobs.own);
  for job in
    select given.* from json_to_recordset(push_jobs.jobs) as given(
      id uuid, queue text, priority smallint, delay bigint, "runAt" bigint, key text, "group" text, attempts integer,
      timeout bigint, trace text, data text)
  loop
    if v_name is distinct from job.queue then
      if v_waiting + v_schedule > 0 then
        insert into counts (queue, scheduled, waiting, ready) values (v_queue, v_schedule, v_waiting, v_waiting);
        v_waiting := 0;
        v_schedule := 0;
      end if;
      v_name := job.queue;
      v_queue := queue_of(v_name);
      select capacity into v_capacity from queues where id = v_queue;
      if v_capacity is not null then
        -- Others that push to this queue wait until this transaction ends: only then is it known how much room it took.
        perform pg_advisory_xact_lock(hashtext('millpond room'), v_queue);
        select v_capacity - coalesce(sum(scheduled + waiting), 0) into v_room from counts where queue = v_queue;
      end if;
    end if;
    v_due := greatest(v_now, coalesce(job."runAt", v_now + coalesce(job.delay, 0)));
    v_later := v_due > v_now;
    <<attempt>>
    loop
      v_existing := null;
      select id into v_existing from waiting where id = job.id;
      if v_existing is null and known_ids(array[job.id]) is not null then v_existing := job.id; end if;
      if v_existing is null and job.key is not null then
        select id into v_existing from keys where queue = v_queue and key = job.key;
      end if;
      exit when v_existing is not null;
      if v_capacity is not null and v_room <= 0 then
        v_outcomes := v_outcomes || ('full ' || job.id);
        exit;
      end if;
      if job.key is not null then
        insert into keys (queue, key, id) values (v_queue, job.key, job.id) on conflict do nothing;
        get diagnostics v_count = row_count;
        continue attempt when v_count = 0;
      end if;
      insert into waiting (seq, pushed_at, due_at, timeout, id, queue, attempts, priority, scheduled, key, "group", trace, encoding, data, data_bytes)
      values (nextval('place'), v_now, v_due, job.timeout, job.id, v_queue, job.attempts, job.priority, v_later, job.key, job."group",
        job.trace, encoding_of(job.data), text_of(job.data), bytes_of(job.data))
      on conflict do nothing;
      get diagnostics v_count = row_count;
      if v_count = 0 or known_ids(array[job.id]) is not null then
        -- The same id was pushed by another at the same time.
        if v_count > 0 then delete from waiting where id = job.id; end if;
        if job.key is not null then delete from keys where queue = v_queue and key = job.key; end if;
        v_existing := job.id;
        exit;
      end if;
      v_outcomes := v_outcomes || ('pushed ' || job.id);
      v_room := v_room - 1;
      if v_later then v_schedule := v_schedule + 1;
      else
        v_waiting := v_waiting + 1;
        if v_name <> all (v_ring) then v_ring := v_ring || v_name; end if;
      end if;
      exit;
    end loop;
    if v_existing is not null then v_outcomes := v_outcomes || ('existing ' || v_existing); end if;
  end loop;
  if v_waiting + v_schedule > 0 then
    insert into counts (queue, scheduled, waiting, ready) values (v_queue, v_schedule, v_waiting, v_waiting);
  end if;
  foreach v_name in array v_ring loop
    perform ring_work(v_name, push_jobs.own);
  end loop;
  return v_outcomes;
end $$;

-- A UUIDv7 (RFC 9562): 48 bits of time, the rest random but for version and variant.
create or replace function millpond.new_id() returns uuid
language sql volatile as $$
  select encode(
    set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) placing substring(int8send(millpond.time_of(null)) from 3) from 1 for 6), 52, 1), 53, 1),
    'hex')::uuid
$$;

-- One job, in the caller's transaction: select millpond.push('emails', '{"to":"a@example.org"}'). delay and timeout in ms.
-- With the key of a live job that job's id comes back, and nothing is stored.
create or replace function millpond.push(
  queue text, data json, priority integer default 4, delay bigint default 0, run_at timestamptz default null, key text default null,
  "group" text default null, attempts integer default 10, timeout bigint default null, trace text default null, id uuid default null
) returns uuid
language plpgsql security definer set search_path = millpond, pg_temp
as $$
#variable_conflict use_variable
declare
  v_outcome text;
begin
  -- The same rules as in every library.
  if queue is null or queue !~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$' then
    raise exception 'InvalidName: a queue name has 1 to 128 of A-Z a-z 0-9 _ - . : / and begins with a letter or digit' using errcode = '22023';
  elsif octet_length(key) not between 1 and 255 or octet_length("group") not between 1 and 255 then
    raise exception 'InvalidName: a key or group has 1 to 255 bytes' using errcode = '22023';
  elsif data is null then
    raise exception 'InvalidOption: data is null; push ''null'' to mean the JSON value' using errcode = '22023';
  elsif priority is null or priority not between 0 and 9 then
    raise exception 'InvalidOption: priority is 0 to 9' using errcode = '22023';
  elsif attempts is null or attempts not between 1 and 1000000 then
    raise exception 'InvalidOption: attempts is 1 to 1000000' using errcode = '22023';
  elsif coalesce(delay, -1) < 0 or timeout < 1 then
    raise exception 'InvalidOption: delay is at least 0 ms, timeout at least 1' using errcode = '22023';
  end if;
  v_outcome := (push_jobs(json_build_array(json_build_object(
    'id', coalesce(id, new_id()), 'queue', queue, 'priority', priority, 'delay', delay,
    'runAt', floor(extract(epoch from run_at) * 1000), 'key', key, 'group', "group", 'attempts', attempts, 'timeout', timeout,
    'trace', trace, 'data', 'j' || data::text)), false))[1];
  return case when v_outcome not like 'full %' then split_part(v_outcome, ' ', 2)::uuid end;
end $$;
