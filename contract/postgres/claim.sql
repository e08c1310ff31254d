-- claim: gives waiting jobs to a worker.
-- In:  queue, worker, limit; min_priority: only jobs of it or above; per_group: most jobs of a group in one turn; lease in ms, null: the
--      queue's; listener: who wants to be notified of the next push if there was no job; or null.
-- Out: at: the time; holds: the lease in ms; jobs: a JSON list of a list per job, highest priority first, then by place, or null: id
--      fence attempt attempts priority pushed_at due_at, data (JSON text, else bytes in base64), and a list of key group timeout trace
--      encoding where any of them is more than null or `json`, and, last in it, how many entries its journal has; retry_after: ms, or
--      null; asleep: the
--      listener was noted only now, or pushes are under way that did not see it yet, so what they store would go unnoticed: claim
--      once more; bounded: the queue has a capacity; limited: it has a limit of running jobs or a rate, or its groups have a rate;
--      slots: the end of a job may let another one start.
--      After a claim that brought some jobs, but fewer than asked for, nobody is notified: ask again after a few ms. In a steady stream
--      each push would ring otherwise.
--      MP004: it took longer than half its lease, and was undone. Ask for one job then: a single one is given, however long that takes.
--      Fewer than asked for also where the data of what was found comes to 16 MiB: ask for the rest.
-- Invariant: fence and attempt grow by one, after a crash the fence by more; a job is in one claim at a time; none from a paused queue.
--      Needs no fsync: what is undone by a crash is claimed anew, and all that follows from a claim comes after it in the log.
--      A claim never waits for another one: each skips what the other has locked. But claims of a queue with limits follow each other:
--      see turns.sql.

-- The server has crashed, or the schema was restored, since the last claim: claims that were undone have had fences above the last ones
-- known.
-- `recover` raises them; of several claims at once one calls it.
create or replace function millpond.after_crash() returns bigint
language plpgsql as $$
declare
  v_fences bigint;
begin
  perform from millpond.meta for update;
  select fences into v_fences from millpond.unharmed;
  if not found then
    v_fences := millpond.recover();
  end if;
  return v_fences;
end $$;

-- Whether something is under way in the queue that may make a job startable, and that did not see who was asleep yet: see `ring`. To be
-- called before looking for jobs: what commits between a look and this would neither be found nor seen under way.
create or replace function millpond.is_stirring(p_queue text) returns boolean
language plpgsql as $$
begin
  -- One expression: between two statements a call can be cancelled, and the session would keep the lock.
  return case when pg_try_advisory_lock(hashtext('millpond work'), hashtext(p_queue))
    then not pg_advisory_unlock(hashtext('millpond work'), hashtext(p_queue)) else true end;
end $$;

create or replace function millpond.claim(
  queue text, worker text, "limit" integer, lease bigint default null, listener text default null, now bigint default null,
  min_priority integer default 0, per_group integer default 1, out at bigint, out holds bigint, out jobs text, out retry_after bigint,
  out asleep boolean,
  out bounded boolean, out limited boolean, out slots boolean
) returns record
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_began  constant timestamptz := clock_timestamp();
  v_locked timestamptz;
  v_large  constant bigint := 16777216;
  v_queue  integer;
  v_paused boolean;
  v_fences bigint;
  v_lines  integer[];
  v_places bigint[];
  v_ctids  tid[];
  v_bytes  bigint;
  v_count  integer := 0;
  v_passed integer[];
  v_noted  boolean;
  v_until  bigint;
  v_limits text;
  v_wait   bigint;
  v_steps  boolean;
begin
  perform read_committed();
  -- The time is taken, and the lease begins, when nobody keeps us from these tables.
  lock table waiting, running in row exclusive mode;
  -- Limits do not begin while this is held: see enter_limits.
  perform pg_advisory_xact_lock_shared(hashtext('millpond claim'), hashtext(claim.queue));
  at := hold_time('leases', claim.now);
  select unharmed.fences, q.id, q.paused, q.paused_until, q.limits, q.capacity is not null, coalesce(claim.lease, q.lease, 30000),
    exists (select from sleepers where sleepers.queue = claim.queue and kind = 'work' and sleepers.listener = claim.listener)
  into v_fences, v_queue, v_paused, v_until, v_limits, bounded, holds, v_noted
  from unharmed left join queues as q on q.name = claim.queue;
  if found then perform set_config('synchronous_commit', 'off', true);
  else
    -- On the disk before any fence above it is known.
    v_fences := after_crash();
    select q.id, q.paused, q.paused_until, q.limits, q.capacity is not null, q.lease
    into v_queue, v_paused, v_until, v_limits, bounded, holds from queues as q where q.name = claim.queue;
    holds := coalesce(claim.lease, holds, 30000);
  end if;
  v_locked := clock_timestamp();
  asleep := v_noted and is_stirring(claim.queue);
  limited := false;
  slots := v_limits is not null;
  if v_until > at then perform lower_pause(v_queue, at); end if;
  if v_limits is not null and not v_paused then
    perform from turns where turns.queue = v_queue for update;
    v_locked := clock_timestamp();
    at := time_of(claim.now);
    select started.jobs, started.count, started.wait, started.limited into jobs, v_count, v_wait, limited
    from claim_limited(v_queue, claim.worker, claim."limit", claim.min_priority, claim.per_group, at, holds, v_fences) as started;
    if v_count > 0 and bounded then perform ring('room', claim.queue); end if;
  elsif v_queue is not null and not v_paused then
    select array_agg(line), array_agg(places) into v_lines, v_places from lines where queue = v_queue;
    select coalesce(array_agg(ctid), '{}'), sum(bytes), bool_or(journals) into v_ctids, v_bytes, v_steps from (
      select head.ctid, head.bytes, open.journals
      -- Seen with the same snapshot as the jobs: a release that pauses the queue gives its job back in the same commit, and a job that
      -- has a journal is seen with the word of it.
      from (
        select q.journals from queues as q
        where q.id = v_queue and not q.paused and pause_end(q.paused_until, q.pause_length, at) <= at
      ) as open cross join generate_series(1, 10 - claim.min_priority) as level(nth) cross join lateral (
        select ready.ctid, ready.bytes
        from generate_subscripts(v_lines, 1) as line(nth) cross join lateral (
          select ctid, place, coalesce(octet_length(data), octet_length(data_bytes), 0) as bytes from waiting
          where queue = v_queue and line = v_lines[line.nth] and state = 'waiting' and priority = (10 - level.nth)::smallint
            and place >= v_places[line.nth][level.nth]
          order by place limit claim."limit"
          for update skip locked
        ) as ready order by ready.place limit claim."limit"
      ) as head
      limit claim."limit") as locked;
    if v_bytes > v_large then
      v_ctids := array(
        select ctid from (
          select given.ctid, given.nth,
            sum(coalesce(octet_length(data), octet_length(data_bytes), 0))
              over (order by given.nth rows between unbounded preceding and 1 preceding) as before
          from unnest(v_ctids) with ordinality as given(ctid, nth) join waiting on waiting.ctid = given.ctid
        ) as sized
        where before is null or before < v_large order by nth);
    end if;
    if cardinality(v_ctids) > 0 then
      with taken as (
        delete from waiting where ctid = any (v_ctids) returning *
      ), moved as (
        insert into running (place, pushed_at, due_at, timeout, started_at, id, queue, fence, attempt, attempts, priority, cost, line, key,
          "group", trace, worker, encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error, log, remember,
          lease_until)
        select place, pushed_at, due_at, timeout, at, id, queue, greatest(fence, v_fences) + 1, attempt + 1, attempts, priority, cost, line,
          key,
          "group", trace, claim.worker, encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error, log, remember,
          at + holds
        from taken
        returning *
      ), sorted as (
        select * from moved order by priority desc, place
      )
      select '[' || string_agg(
          '["' || id || '",' || fence || ',' || attempt || ',' || attempts || ',' || priority || ',' || pushed_at || ',' || due_at || ',' ||
            to_json(coalesce(data, encode(data_bytes, 'base64'))) ||
            case when v_steps then ',' || json_build_array(key, "group", timeout, trace, encoding, (
              select nullif(count, 0) from journals where journals.place = sorted.place)) || ']'
            when key is null and "group" is null and timeout is null and trace is null and encoding = 'json' then ']'
            else ',' || json_build_array(key, "group", timeout, trace, encoding) || ']' end, ',') || ']',
        count(*), array_agg(line) filter (where is_milestone(line, place))
      into jobs, v_count, v_passed from sorted;
      insert into moves (queue, segment, was, becomes, cause, count) values (v_queue, -1, 'waiting', 'running', 'claim', v_count);
      if bounded then perform ring('room', claim.queue); end if;
      if v_passed is not null then
        perform advance(v_queue, (select q.line from queues as q where q.id = v_queue) = any (v_passed));
      end if;
    end if;
    if v_bytes > v_large then v_wait := 0; end if;
    if v_count = 0 then
      select nullif(greatest(pause_end(q.paused_until, q.pause_length, at) - at, 0), 0) into v_wait from queues as q where q.id = v_queue;
    end if;
  end if;
  -- Whoever asked may have given up: let others have the jobs, and the attempts not be used up. But a job that takes that long by
  -- itself, without any wait, is given: else it would come to nobody, and nobody would get past it. Its attempts are used up if it
  -- cannot be delivered.
  if v_count > 0 and (case when v_count = 1 then v_locked else clock_timestamp() end) - v_began
    > make_interval(secs => greatest(holds, 2000) / 2000.0) then
    raise exception 'the claim took longer than half its lease' using errcode = 'MP004';
  end if;
  if not v_paused and v_count < claim."limit" then
    if v_wait = 0 then retry_after := 0;
    else
      select greatest(due_at - at, 0) into retry_after from waiting
      where queue = v_queue and state = 'scheduled' and due_at >= (select last_value from swept_due) and due_at < 281474976710655
      order by due_at, place limit 1;
      retry_after := least(retry_after, v_wait);
    end if;
  end if;
  if v_count > 0 or claim.listener is null then asleep := false;
  elsif v_noted is not true then
    insert into sleepers (queue, kind, listener) values (claim.queue, 'work', claim.listener) on conflict do nothing;
    asleep := true;
  end if;
end $$;
