-- once: what a key does beyond one live job: operations.md, "Once for a while".
-- `keys` has a row per key: of the live job that has it (`until` null), or of one that has ended and is remembered. `follower`: a job
-- that is stored in `waiting`, scheduled for no time, with `follow_due`, until the one that it follows ends.
-- Invariant: whoever changes a row of `keys` that was there has locked the row of the job before. A key that is neither remembered nor
-- followed costs the end of its job nothing but a delete.

-- What `keys` keeps of a job's `remember`: ms after its end, or, below 0, minus the time until which its key is remembered.
create or replace function millpond.key_memory(p_remember bigint, p_pushed_at bigint) returns bigint
language sql immutable parallel safe as $$
  select case when p_remember < 0 then p_remember - p_pushed_at else p_remember end
$$;

-- A job that becomes live takes over a key that is remembered until before p_before, or free. False: another one has it.
create or replace function millpond.take_key(p_queue integer, p_key text, p_id uuid, p_memory bigint, p_before bigint) returns boolean
language plpgsql as $$
begin
  insert into millpond.keys (queue, key, id, memory) values (p_queue, p_key, p_id, p_memory)
  on conflict (queue, key) do update set id = excluded.id, memory = excluded.memory, until = null where keys.until < p_before;
  return found;
end $$;

-- Takes the free keys of a push of several jobs in one order, so that no two pushes wait for each other. Locks the jobs that it replaces,
-- in the order of ids. Per job, in step: its queue, key (null: nothing to take), id, which is there once, what `keys` keeps of `unique`,
-- whether it has no `once`, and whether it replaces.
-- taken: whether it has its key now; of several with one key it is the first. holders: another one that has its key. Its row of `keys` is
-- locked, so it has the key until the push is committed. Not of a job with `once`: it locks the other job's row first, as all who change
-- a key do.
create or replace function millpond.take_keys(
  p_queues integer[], p_keys text[], p_ids uuid[], p_memories bigint[], p_plain boolean[], p_replaces boolean[], p_now bigint,
  out taken boolean[], out holders uuid[]
) language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_won uuid[];
begin
  with first as materialized (
    select distinct on (queue, key) * from unnest(p_queues, p_keys, p_ids, p_memories, p_plain) with ordinality
      as job(queue, key, id, memory, plain, nth)
    where key is not null order by queue, key, nth
  ), plain as (
    insert into millpond.keys (queue, key, id, memory) select queue, key, id, memory from first where plain order by queue, key
    on conflict (queue, key) do update set id = excluded.id where false returning id
  ), beyond as (
    insert into millpond.keys (queue, key, id, memory) select queue, key, id, memory from first where not plain order by queue, key
    on conflict do nothing returning id
  )
  select array_agg(id) into v_won from (select id from plain union all select id from beyond) as won;
  select array_agg(key is not null and id in (select unnest(v_won)) order by nth),
    array_agg(case when plain then (
      select keys.id from millpond.keys where keys.queue = job.queue and keys.key = job.key and (until is null or until > p_now)
    ) end order by nth)
  into taken, holders
  from unnest(p_queues, p_keys, p_ids, p_plain) with ordinality as job(queue, key, id, plain, nth);
  if true = any (p_replaces) then
    perform from millpond.waiting where id = any (array(
      select (select coalesce(follower, keys.id) from millpond.keys where keys.queue = job.queue and keys.key = job.key)
      from unnest(p_queues, p_keys, p_replaces, taken) as job(queue, key, replaces, taken) where replaces and not job.taken
    )) order by id for update;
  end if;
end $$;

-- `unique` of a push or a record, as jobs keep it: ms after the end, or, below 0, after the push.
create or replace function millpond.remember_of(p_unique json) returns bigint
language plpgsql immutable as $$
declare
  v_for bigint := p_unique ->> 'for';
begin
  if v_for not between 1 and 8640000000000000 then
    raise exception 'InvalidOption: unique is at least 1 ms' using errcode = '22023';
  end if;
  return case when p_unique ->> 'since' = 'push' then -v_for else v_for end;
end $$;

-- A push finds a key that a job has. p_once: JSON of replace, maxWait, follow; p_due: when the push would be due.
-- Returns `existing ID`; `replaced ID`; `follows ID`: that job runs, and its row is locked; null: the key is free by now, or was remembered
-- until now.
create or replace function millpond.meet(p_queue integer, p_key text, p_once json, p_due bigint, p_now bigint, p_data text) returns text
language plpgsql as $$
declare
  v_replace constant boolean := coalesce((p_once ->> 'replace')::boolean, false);
  v_follow  constant boolean := coalesce((p_once ->> 'follow')::boolean, false);
  v_runs    boolean;
  held      millpond.keys%rowtype;
  job       millpond.waiting%rowtype;
begin
  loop
    select * into held from millpond.keys where queue = p_queue and key = p_key;
    if not found then return null; end if;
    if held.until is not null then return case when held.until > p_now then 'existing ' || held.id end; end if;
    if not v_replace and not v_follow then return 'existing ' || held.id; end if;
    if held.follower is not null or v_replace then
      select * into job from millpond.waiting where id = coalesce(held.follower, held.id) for update;
    else
      -- Not locked: a claim would pass over it.
      perform from millpond.waiting where id = held.id;
      if found then return 'existing ' || held.id; end if;
    end if;
    v_runs := false;
    if job.id is null and held.follower is null then
      -- The worker may extend its lease meanwhile, but not end the job.
      perform from millpond.running where id = held.id for key share;
      v_runs := found;
    end if;
    -- The key does not change hands while the row is locked. In a statement of its own, which sees what was committed before the lock.
    if (job.id is not null or v_runs) and exists (
      select from millpond.keys where queue = p_queue and key = p_key and id = held.id and follower is not distinct from held.follower)
    then
      if job.id is null then return case when v_follow then 'follows ' else 'existing ' end || held.id; end if;
      perform millpond.change_job(job.id, p_data, null, null, least(p_due, job.pushed_at + (p_once ->> 'maxWait')::bigint), p_now);
      return 'replaced ' || job.id;
    end if;
    -- The job is on its way from one table to the next.
  end loop;
end $$;

-- A live job's row was taken out of its table for good: its key goes to its follower, or is remembered where there is an answer, or free.
create or replace function millpond.leave_key(p_queue integer, p_key text, p_id uuid, p_answers boolean, p_now bigint) returns void
language plpgsql as $$
declare
  held    millpond.keys%rowtype;
  v_until bigint;
begin
  loop
    select * into held from millpond.keys where queue = p_queue and key = p_key;
    exit when not found;
    if held.follower is not null and held.id = p_id then
      perform from millpond.waiting where id = held.follower for update;
    end if;
    exit when exists (select from millpond.keys where queue = p_queue and key = p_key and id = held.id
      and follower is not distinct from held.follower for update);
  end loop;
  if held.id is distinct from p_id then
    update millpond.keys set follower = null where queue = p_queue and key = p_key and follower = p_id;
  elsif held.follower is not null then
    perform millpond.follow(held, p_now);
  else
    v_until := case when p_answers and held.memory < 0 then -held.memory when p_answers then p_now + held.memory end;
    if v_until > p_now then update millpond.keys set until = v_until where queue = p_queue and key = p_key;
    else delete from millpond.keys where queue = p_queue and key = p_key;
    end if;
  end if;
end $$;

-- The follower has the key, and is due. p_now: a time that the caller holds.
create or replace function millpond.follow(p_held millpond.keys, p_now bigint) returns void
language plpgsql as $$
declare
  v_due bigint;
begin
  update millpond.waiting set due_at = greatest(p_now, follow_due), follow_due = null where id = p_held.follower
  returning due_at into v_due;
  update millpond.keys set id = p_held.follower, follower = null,
    memory = (select millpond.key_memory(remember, pushed_at) from millpond.waiting where id = p_held.follower)
  where queue = p_held.queue and key = p_held.key;
  -- Those who cannot LISTEN see that something came.
  insert into millpond.moves (queue, segment, was, becomes, cause, count) values (p_held.queue, -1, 'scheduled', 'scheduled', 'update', 1);
  if v_due < p_now + 1000 then perform millpond.ring('work', name) from millpond.queues where id = p_held.queue; end if;
end $$;

-- The keys of jobs that are done, beyond those that were free at once.
create or replace function millpond.leave_keys(p_queue integer, p_keys text[], p_now bigint) returns void
language plpgsql as $$
begin
  perform millpond.leave_key(p_queue, keys.key, keys.id, true, p_now) from (
    select own.key, own.id from unnest(p_keys) as given(key) cross join lateral (
      select keys.key, id from millpond.keys where queue = p_queue and keys.key = given.key and until is null offset 0
    ) as own order by own.key offset 0
  ) as keys;
end $$;

-- A job that has ended is restored: its key is remembered as if it had ended here.
create or replace function millpond.remember(p_job millpond.waiting, p_finished bigint, p_now bigint) returns void
language plpgsql as $$
declare
  v_until bigint := case when p_job.remember < 0 then p_job.pushed_at - p_job.remember else p_finished + p_job.remember end;
begin
  if v_until > p_now then
    insert into millpond.keys (queue, key, id, until) values (p_job.queue, p_job.key, p_job.id, v_until)
    on conflict (queue, key) do update set id = excluded.id, until = excluded.until where keys.until < excluded.until;
  end if;
end $$;

-- Forgets keys that were remembered long enough; returns how many.
create or replace function millpond.forget_keys(p_limit bigint, p_now bigint) returns integer
language plpgsql as $$
declare
  v_count integer := 0;
begin
  if exists (select from millpond.keys where until <= p_now) then
    delete from millpond.keys where ctid = any (array(
      select ctid from millpond.keys where until <= p_now order by until limit greatest(p_limit, 0) for update skip locked));
    get diagnostics v_count = row_count;
  end if;
  return v_count;
end $$;
