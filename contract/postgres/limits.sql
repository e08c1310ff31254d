-- limits: running jobs and rates, of queues and groups. Part of claim, release, configure, limit-group and sweep.
-- Nothing counts slots up or down: a slot is a row of `running`, counted by index.
-- Which jobs of a grouped queue are next is in turns.sql.

-- Microseconds that a start of cost 1 takes.
create or replace function millpond.step_of(p_rate millpond.rate) returns bigint
language sql immutable as $$
  select ((p_rate).per * 1000 + (p_rate).count - 1) / (p_rate).count
$$;

create or replace function millpond.burst_of(p_rate millpond.rate) returns bigint
language sql immutable as $$
  select coalesce((p_rate).burst, greatest(1, (p_rate).count::bigint * 100 / (p_rate).per))
$$;

-- `full`, in microseconds, where the last start had that cost. It never counts as further ahead than that start could bring it by the
-- present rate and clock: what an earlier rate left, or a clock that went back, does not hold jobs for longer. A claim that finds it
-- further ahead stores the bound.
create or replace function millpond.full_of(p_rate millpond.rate, p_full bigint, p_full_cost integer, p_now bigint) returns bigint
language sql immutable as $$
  select least(p_full, p_now * 1000 + greatest(millpond.burst_of(p_rate), p_full_cost) * millpond.step_of(p_rate))
$$;

-- Milliseconds until the rate allows a start of that cost, 0 or less: now. Null without a rate.
create or replace function millpond.rate_wait(p_rate millpond.rate, p_full bigint, p_full_cost integer, p_cost integer,
  p_now bigint) returns bigint
language sql immutable as $$
  select ceil((millpond.full_of(p_rate, p_full, p_full_cost, p_now) - p_now * 1000
    - (greatest(p_cost, millpond.burst_of(p_rate)) - p_cost) * millpond.step_of(p_rate)) / 1000.0)::bigint
$$;

-- When a pause of that length is over: never later than its length from now on, whatever the clock did. A claim that finds it later
-- stores the bound.
create or replace function millpond.pause_end(p_until bigint, p_for bigint, p_now bigint) returns bigint
language sql immutable as $$
  select least(p_until, p_now + p_for)
$$;

-- The rate of a group. The jobs without a group (an empty name) have none but their own.
create or replace function millpond.rate_of(p_limits millpond.limits, p_name text, p_own millpond.rate) returns millpond.rate
language sql immutable as $$
  select case when (p_own).count is not null then p_own when p_name <> '' then (p_limits).group_rate end
$$;

-- `full` after these claims were given back, in their order: of their group's rate, or the queue's. Each counts by the rate and the time of
-- its release, whenever a claim learns of it: without a pause, the rate gets back the part of the start that had not expired by then.
create or replace function millpond.after_releases(
  p_full bigint, p_full_cost integer, p_released millpond.released[], p_of_group boolean
) returns bigint
language plpgsql immutable as $$
declare
  v_job  millpond.released;
  v_rate millpond.rate;
begin
  foreach v_job in array coalesce(p_released, '{}') loop
    if p_of_group then v_rate := v_job.group_rate; else v_rate := v_job.rate; end if;
    continue when v_job.pause > 0 or v_rate.count is null;
    p_full := millpond.full_of(v_rate, p_full, p_full_cost, v_job.at) - least(v_job.cost * millpond.step_of(v_rate),
      greatest(0, (v_job.started_at - v_job.at) * 1000 + v_job.cost * millpond.step_of(v_rate)));
  end loop;
  return p_full;
end $$;

-- For claims: lowers the pause of a queue where the clock went back.
create or replace function millpond.lower_pause(p_queue integer, p_now bigint) returns void
language plpgsql as $$
begin
  if exists (select from millpond.queues where id = p_queue and paused_until > p_now + pause_length) then
    update millpond.queues set paused_until = p_now + pause_length
    where ctid = any (array(
      select ctid from millpond.queues where id = p_queue and paused_until > p_now + pause_length for no key update skip locked));
  end if;
end $$;

-- A rate as it travels: JSON, or null.
create or replace function millpond.rate_from(p_rate jsonb) returns millpond.rate
language plpgsql immutable as $$
declare
  v_rate millpond.rate;
begin
  if jsonb_typeof(p_rate) is distinct from 'object' then return null; end if;
  v_rate := jsonb_populate_record(null::millpond.rate, p_rate);
  if coalesce(v_rate.count, 0) not between 1 and 1000000 or coalesce(v_rate.per, 0) not between 1 and 86400000
    or v_rate.count > v_rate.per * 1000 or v_rate.burst not between 1 and 1000000
      or v_rate.burst * millpond.step_of(v_rate) > 1000000000000000 then
    raise exception 'InvalidOption: the rate is out of range' using errcode = '22023';
  end if;
  return v_rate;
end $$;

-- What `queues.limits` says of a queue with these limits.
create or replace function millpond.kind_of(p_limits millpond.limits) returns text
language sql immutable as $$
  select case when (p_limits).grouped then 'groups' when (p_limits).running is not null or ((p_limits).rate).count is not null
    then 'queue' end
$$;

-- The limits with these changes: JSON with any of running, rate, grouped, groupRunning, groupRate. What is not there stays.
create or replace function millpond.changed_limits(p_limits millpond.limits, p_changes jsonb) returns millpond.limits
language plpgsql immutable as $$
begin
  if p_changes ? 'running' then p_limits.running := p_changes ->> 'running'; end if;
  if p_changes ? 'rate' then p_limits.rate := millpond.rate_from(p_changes -> 'rate'); end if;
  if p_changes ? 'groupRunning' then p_limits.group_running := p_changes ->> 'groupRunning'; end if;
  if p_changes ? 'groupRate' then p_limits.group_rate := millpond.rate_from(p_changes -> 'groupRate'); end if;
  p_limits.grouped := coalesce(p_limits.grouped, false) or coalesce(p_changes -> 'grouped' = 'true', false)
    or p_limits.group_running is not null or (p_limits.group_rate).count is not null;
  return p_limits;
end $$;

create or replace function millpond.limits_json(p_limits millpond.limits) returns json
language sql immutable as $$
  select json_build_object('running', p_limits.running, 'rate', p_limits.rate, 'grouped', coalesce(p_limits.grouped, false),
    'groupRunning', p_limits.group_running, 'groupRate', p_limits.group_rate)
$$;

-- To be called before a queue's row is locked: where its limits begin, or its groups, no claim may be under way that does not know of them.
-- Claims hold this lock shared, from before they read the queue's row.
create or replace function millpond.enter_limits(p_queue text, p_changes jsonb) returns void
language plpgsql as $$
declare
  v_before millpond.limits;
begin
  select l.* into v_before from millpond.limits as l join millpond.queues as q on q.id = l.queue where q.name = p_queue;
  if millpond.kind_of(millpond.changed_limits(v_before, p_changes)) is distinct from millpond.kind_of(v_before) then
    perform pg_advisory_xact_lock(hashtext('millpond claim'), hashtext(p_queue));
  end if;
end $$;

-- For configure and limit_group, after `enter_limits`: the queue's row is locked.
create or replace function millpond.set_limits(p_queue integer, p_changes jsonb) returns void
language plpgsql as $$
declare
  v_before millpond.limits;
  v_after  millpond.limits;
  v_kind   text;
  v_line   integer;
begin
  select * into v_before from millpond.limits where queue = p_queue;
  if not found then
    insert into millpond.limits (queue) values (p_queue) returning * into v_before;
    insert into millpond.turns (queue) values (p_queue);
  end if;
  v_after := millpond.changed_limits(v_before, p_changes);
  -- Every process configures its queues when it begins: mostly nothing changes.
  if v_after is not distinct from v_before then return; end if;
  update millpond.limits set version = version + 1, running = v_after.running, rate = v_after.rate, grouped = v_after.grouped,
    group_running = v_after.group_running, group_rate = v_after.group_rate where queue = p_queue;
  v_kind := millpond.kind_of(v_after);
  if v_kind is not distinct from millpond.kind_of(v_before) then return; end if;
  if not exists (
    select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() and mode = 'ExclusiveLock' and objsubid = 2
      and classid = hashtext('millpond claim')::oid and objid = hashtext((select name from millpond.queues where id = p_queue))::oid
  ) then raise exception 'the limits of the queue have changed meanwhile' using errcode = '40001'; end if;
  update millpond.queues set limits = v_kind where id = p_queue;
  if v_kind is null then return; end if;
  -- Jobs that run already count from now on. Rows that are locked are waited for: they may stay. In the order of ids, as all who lock
  -- several.
  v_line := case when v_kind = 'groups' then -1 else -2 end;
  perform from millpond.running where queue + 0 = p_queue and line <> v_line order by id for no key update;
  with counted as (
    update millpond.running set line = v_line where queue + 0 = p_queue and line <> v_line returning "group"
  )
  insert into millpond.arrivals (queue, groups)
  select p_queue, array_agg(distinct coalesce("group", '')) from counted having v_kind = 'groups' and count(*) > 0;
  if v_kind = 'groups' then
    insert into millpond.lines (queue, line) values (p_queue, -1);
    -- The rest is moved by claims.
    perform millpond.adopt_waiting(p_queue);
  end if;
end $$;

-- Moves up to 1,000 jobs that were pushed before the queue was grouped into lines of their groups, in the order of claiming. Returns how
-- many.
create or replace function millpond.adopt_waiting(p_queue integer) returns integer
language plpgsql as $$
declare
  v_ctids tid[] := array(
    select ctid from millpond.waiting where queue = p_queue and line >= 0 and state = 'waiting'
    order by line, priority desc, place limit 1000 for update skip locked);
begin
  if v_ctids = '{}' then return 0; end if;
  with moved as (
    update millpond.waiting set line = -1 where ctid = any (v_ctids) returning "group"
  )
  insert into millpond.arrivals (queue, groups) select p_queue, array_agg(distinct coalesce("group", '')) from moved having count(*) > 0;
  return cardinality(v_ctids);
end $$;

-- The first jobs in the plain order.
create or replace function millpond.by_place(p_queue integer, p_most integer, p_least integer, p_now bigint) returns millpond.candidate[]
language plpgsql as $$
begin
  return (
    select coalesce(array_agg((head.ctid, null, null, head.priority, head.cost, head.bytes, null, null)::millpond.candidate), '{}') from (
      select ready.* from generate_series(1, 10 - p_least) as level(nth) cross join lateral (
        select w.* from millpond.lines as line cross join lateral (
          select ctid, priority, place, cost, coalesce(octet_length(data), octet_length(data_bytes), 0) as bytes from millpond.waiting
          where queue = p_queue and waiting.line = line.line and state = 'waiting' and priority = (10 - level.nth)::smallint
            and place >= line.places[level.nth]
          order by place limit p_most for update skip locked
        ) as w where line.queue = p_queue order by w.place limit p_most
      ) as ready
      -- Seen with the same snapshot as the jobs: a release that pauses the queue gives its job back in the same commit.
      where (select not q.paused and millpond.pause_end(q.paused_until, q.pause_length, p_now) <= p_now from millpond.queues as q
        where q.id = p_queue)
      limit p_most
    ) as head);
end $$;

-- The claim of a queue with limits, which holds its row of `turns`. Out: jobs as of `claim`, in the order of their starts; wait: ms
-- until a rate or pause allows another start, 0 where more may wait that was not looked at, null: not known; limited as of `claim`.
create or replace function millpond.claim_limited(
  p_queue integer, p_worker text, p_limit integer, p_least integer, p_each integer, p_now bigint, p_holds bigint, p_fences bigint,
  out jobs text, out count integer, out wait bigint, out limited boolean
) language plpgsql as $$
declare
  v_large   constant bigint := 16777216;
  v_limits  millpond.limits;
  v_turns   millpond.turns;
  v_free    bigint  := p_limit;
  v_rest    boolean := false;
  v_stopped boolean := false;
  v_found   millpond.candidate[];
  v_bytes   bigint  := 0;
  v_full    bigint;
  v_cost    integer;
  v_ctids   tid[]   := '{}';
  v_nths    bigint[];
  v_passed  integer[];
begin
  count := 0;
  -- It remembers rows that are never asked for twice, which takes four times as long as to read them. Unknown before PostgreSQL 14.
  if current_setting('enable_memoize', true) is not null then perform set_config('enable_memoize', 'off', true); end if;
  select * into v_limits from millpond.limits where queue = p_queue;
  select * into v_turns from millpond.turns where queue = p_queue;
  limited := v_limits.running is not null or (v_limits.rate).count is not null or (v_limits.group_rate).count is not null;
  if v_limits.running is not null then
    v_free := v_limits.running - (
      select count(*) from (select from millpond.running where queue = p_queue and line < 0 limit v_limits.running) as slot);
    if v_free <= 0 then return; end if;
  end if;
  if v_limits.grouped then v_rest := millpond.adopt_waiting(p_queue) = 1000; end if;
  v_turns := millpond.fold(v_turns, v_limits, p_now);
  -- What lies beyond its bound is lowered for good: the bound itself moves with the time.
  if millpond.full_of(v_limits.rate, v_turns.full_at, v_turns.full_cost, p_now) < v_turns.full_at then
    update millpond.turns set full_at = millpond.full_of(v_limits.rate, full_at, full_cost, p_now) where queue = p_queue
      returning * into v_turns;
  end if;
  select greatest(0, millpond.pause_end(paused_until, pause_length, p_now) - p_now,
    millpond.rate_wait(v_limits.rate, v_turns.full_at, v_turns.full_cost, 1, p_now)) into wait from millpond.queues where id = p_queue;
  if wait > 0 then return; end if;
  wait := null;
  -- One more than may start tells whether it was the limit that stopped us.
  if v_limits.grouped then v_found := millpond.by_turns(v_turns, v_limits, least(p_limit, v_free + 1)::integer, p_least, p_each, p_now);
  else v_found := millpond.by_place(p_queue, least(p_limit, v_free + 1)::integer, p_least, p_now);
  end if;
  v_full := v_turns.full_at;
  v_cost := v_turns.full_cost;
  for v_nth in 1 .. cardinality(v_found) loop
    if v_nth > v_free then
      v_stopped := true;
      exit;
    end if;
    if (v_limits.rate).count is not null then
      wait := millpond.rate_wait(v_limits.rate, v_full, v_cost, v_found[v_nth].cost, p_now);
      if wait > 0 then
        v_stopped := true;
        exit;
      end if;
      wait := null;
      v_full := greatest(millpond.full_of(v_limits.rate, v_full, v_cost, p_now), p_now * 1000)
        + v_found[v_nth].cost * millpond.step_of(v_limits.rate);
      v_cost := v_found[v_nth].cost;
    end if;
    if v_bytes >= v_large then
      v_rest := true;
      exit;
    end if;
    v_bytes := v_bytes + v_found[v_nth].bytes;
    v_ctids[v_nth] := v_found[v_nth].ctid;
  end loop;
  if cardinality(v_ctids) > 0 then
    -- What somebody else has locked is passed over: a cancel may have taken it. What was taken counts.
    with free as materialized (
      select w.ctid, job.nth from unnest(v_ctids) with ordinality as job(at, nth) cross join lateral (
        select ctid from millpond.waiting where ctid = job.at and queue + 0 = p_queue for update skip locked) as w
    ), taken as (
      delete from millpond.waiting as w using free where w.ctid = free.ctid returning w.*, free.nth
    ), moved as (
      insert into millpond.running (place, pushed_at, due_at, timeout, started_at, id, queue, fence, attempt, attempts, priority, cost,
        line, key,
        "group", trace, worker, encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error, log, remember,
          lease_until)
      select place, pushed_at, due_at, timeout, p_now, id, queue, greatest(fence, p_fences) + 1, attempt + 1, attempts, priority, cost,
        case when v_limits.grouped then -1 else -2 end, key,
        "group", trace, p_worker, encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error, log, remember,
        p_now + p_holds
      from taken
    )
    select '[' || string_agg(
        '["' || id || '",' || greatest(fence, p_fences) + 1 || ',' || attempt + 1 || ',' || attempts || ',' || priority || ','
          || pushed_at || ',' || due_at || ',' ||
          to_json(coalesce(data, encode(data_bytes, 'base64'))) || ',' || case
          -- With the snapshot that has seen the jobs.
          when (select q.journals from millpond.queues as q where q.id = p_queue) then
            json_build_array(key, "group", timeout, trace, encoding, (
              select nullif(j.count, 0) from millpond.journals as j where j.place = taken.place))
          else json_build_array(key, "group", timeout, trace, encoding) end || ']',
        ',' order by nth) || ']',
      count(*), array_agg(nth order by nth), array_agg(line) filter (where line >= 0 and millpond.is_milestone(line, place))
    into jobs, count, v_nths, v_passed from taken;
    v_rest := v_rest or count < cardinality(v_ctids);
  end if;
  if count > 0 then
    insert into millpond.moves (queue, segment, was, becomes, cause, count) values (p_queue, -1, 'waiting', 'running', 'claim', count);
    if v_passed is not null then
      perform millpond.advance(p_queue, (select q.line from millpond.queues as q where q.id = p_queue) = any (v_passed));
    end if;
    if (v_limits.rate).count is not null then
      select greatest(millpond.full_of(v_limits.rate, v_turns.full_at, v_turns.full_cost, p_now), p_now * 1000)
          + sum(v_found[nth].cost) * millpond.step_of(v_limits.rate) into v_full from unnest(v_nths) as nth;
      update millpond.turns set full_at = v_full, full_cost = v_found[v_nths[count]].cost where queue = p_queue;
    end if;
    if v_limits.grouped then
      perform millpond.start_groups(v_turns, v_limits, array(select v_found[nth] from unnest(v_nths) as nth), p_now);
    end if;
  end if;
  if count = p_limit then wait := null;
  elsif v_rest or not v_stopped and v_limits.grouped and (
    exists (select from millpond.arrivals where queue = p_queue)
    or exists (select from millpond.tickets where queue = p_queue and priority >= p_least)) then wait := 0;
  elsif not v_stopped and v_limits.grouped then
    select held_until - p_now into wait from millpond.groups where queue = p_queue and held_until is not null order by held_until limit 1;
  end if;
end $$;

-- For the sweep: forgets groups that have been idle for long enough; `p_from`: all before that were dealt with. Returns how many,
-- `p_limit` at the most.
-- Only of queues that no claim holds. One that has waiting jobs by now has arrived: the next claim places it.
create or replace function millpond.forget_groups(p_limit integer, p_now bigint, p_from bigint) returns bigint
language plpgsql as $$
declare
  v_ctids tid[] := array(
    select ctid from millpond.groups where forget_at <= p_now and forget_at >= p_from order by forget_at limit p_limit);
  v_queue integer;
  v_count bigint;
  v_gone  bigint := 0;
begin
  for v_queue in select distinct queue from millpond.groups where ctid = any (v_ctids) loop
    continue when not exists (select from millpond.turns where queue = v_queue for update skip locked);
    -- A statement of its own: what a claim did before is seen.
    delete from millpond.groups as g where ctid = any (v_ctids) and queue + 0 = v_queue and forget_at + 0 <= p_now and not exists (
      select from millpond.waiting as w
      where w.queue = g.queue and coalesce(w."group", '') = g.name and w.state = 'waiting' and w.line = -1);
    get diagnostics v_count = row_count;
    v_gone := v_gone + v_count;
  end loop;
  return v_gone;
end $$;
