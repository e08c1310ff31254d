-- limits: running jobs and rates, of queues and groups. Part of claim, release, configure, limit-group and sweep.
-- Nothing counts slots up or down: a slot is a row of `running`, counted by index.
-- Which jobs of a grouped queue are next is in turns.sql.

-- Microseconds that a start of cost 1 takes.
create or replace function millpond.step_of(p_rate millpond.rate) returns bigint
language sql immutable as $$
  select ((p_rate).per * 1000 + (p_rate).count - 1) / (p_rate).count
$$;

-- Milliseconds until the rate allows a start of that cost, 0 or less: now. Null without a rate.
create or replace function millpond.rate_wait(p_rate millpond.rate, p_full bigint, p_cost integer, p_now bigint) returns bigint
language sql immutable as $$
  select ceil((p_full - p_now * 1000
    - (greatest(p_cost, coalesce((p_rate).burst, greatest(1, (p_rate).count::bigint * 100 / (p_rate).per))) - p_cost) * millpond.step_of(p_rate)) / 1000.0)::bigint
$$;

-- A rate as it travels: JSON, or null.
create or replace function millpond.rate_from(p_rate jsonb) returns millpond.rate
language plpgsql immutable as $$
declare
  v_rate millpond.rate;
begin
  if jsonb_typeof(p_rate) is distinct from 'object' then return null; end if;
  v_rate := jsonb_populate_record(null::millpond.rate, p_rate);
  if coalesce(v_rate.count, 0) not between 1 and 1000000 or coalesce(v_rate.per, 0) not between 1 and 86400000
    or v_rate.count > v_rate.per * 1000 or v_rate.burst not between 1 and 1000000 or v_rate.burst * millpond.step_of(v_rate) > 1000000000000000 then
    raise exception 'InvalidOption: the rate is out of range' using errcode = '22023';
  end if;
  return v_rate;
end $$;

-- Makes the queue's jobs that run already count. Those whose rows are locked are ending, or found by a later claim.
create or replace function millpond.adopt_running(p_queue integer, p_line integer) returns void
language sql as $$
  with counted as (
    update millpond.running set line = p_line where ctid = any (array(
      select ctid from millpond.running where queue + 0 = p_queue and line <> p_line for update skip locked))
    returning "group"
  )
  insert into millpond.arrivals (queue, groups)
  select p_queue, array_agg(distinct coalesce("group", '')) from counted having p_line = -1 and count(*) > 0
$$;

-- Moves up to 1,000 jobs that were pushed before the queue was grouped into lines of their groups, in the order of claiming. Returns how many.
create or replace function millpond.adopt_waiting(p_queue integer) returns integer
language plpgsql as $$
declare
  v_ctids tid[] := array(
    select ctid from millpond.waiting where queue = p_queue and line >= 0 and not scheduled
    order by line, priority desc, seq limit 1000 for update skip locked);
begin
  if v_ctids = '{}' then return 0; end if;
  with moved as (
    update millpond.waiting set line = -1 where ctid = any (v_ctids) returning "group"
  )
  insert into millpond.arrivals (queue, groups) select p_queue, array_agg(distinct coalesce("group", '')) from moved having count(*) > 0;
  return cardinality(v_ctids);
end $$;

-- The queue begins to have limits, or groups that take turns, or has changed them. `p_limits`: its row, locked.
create or replace function millpond.use_limits(p_queue integer, p_limits millpond.limits) returns void
language plpgsql as $$
declare
  v_before text;
  v_limits text := case
    when p_limits.grouped then 'groups'
    when p_limits.running is not null or (p_limits.rate).count is not null or p_limits.paused_until > 0 then 'queue' end;
begin
  select limits into v_before from millpond.queues where id = p_queue;
  if v_before is not distinct from v_limits then return; end if;
  update millpond.queues set limits = v_limits where id = p_queue;
  if v_limits is null then return; end if;
  -- Claims under way do not know it yet: what they take is counted by those that come within the time that a call may last. None is, if this
  -- transaction has made the queue.
  if not exists (select from millpond.lines where queue = p_queue and line = 0 and xmin = pg_current_xact_id()::xid) then
    update millpond.limits set adopt_until = clock_timestamp() + interval '1 minute' where queue = p_queue;
    perform millpond.adopt_running(p_queue, case when v_limits = 'groups' then -1 else -2 end);
  end if;
  if v_limits = 'groups' then
    insert into millpond.lines (queue, line) values (p_queue, -1);
    perform millpond.adopt_waiting(p_queue);
  end if;
end $$;

-- For configure: JSON with any of running, rate, grouped, groupRunning, groupRate. What is not there stays.
create or replace function millpond.set_limits(p_queue integer, p_limits jsonb) returns void
language plpgsql as $$
declare
  v_before millpond.limits;
  v_after  millpond.limits;
begin
  insert into millpond.limits (queue) values (p_queue) on conflict do nothing;
  select * into v_before from millpond.limits where queue = p_queue for update;
  v_after := v_before;
  if p_limits ? 'running' then v_after.running := p_limits ->> 'running'; end if;
  if p_limits ? 'rate' then v_after.rate := millpond.rate_from(p_limits -> 'rate'); end if;
  if p_limits ? 'groupRunning' then v_after.group_running := p_limits ->> 'groupRunning'; end if;
  if p_limits ? 'groupRate' then v_after.group_rate := millpond.rate_from(p_limits -> 'groupRate'); end if;
  v_after.grouped := v_before.grouped or coalesce(p_limits -> 'grouped' = 'true', false) or v_after.group_running is not null or (v_after.group_rate).count is not null;
  -- Every process configures its queues when it begins: mostly nothing changes.
  if v_after is not distinct from v_before then return; end if;
  update millpond.limits set version = version + 1, running = v_after.running, rate = v_after.rate, grouped = v_after.grouped,
    group_running = v_after.group_running, group_rate = v_after.group_rate where queue = p_queue;
  perform millpond.use_limits(p_queue, v_after);
  if (v_after.group_running, v_after.group_rate) is distinct from (v_before.group_running, v_before.group_rate) then
    insert into millpond.arrivals (queue, groups)
    select p_queue, array_agg(name) from (
      select name, row_number() over () / 1000 as part from millpond.groups where queue = p_queue and forget_at is null) as each group by part;
  end if;
end $$;

-- The first jobs in the plain order.
create or replace function millpond.by_place(p_queue integer, p_most integer, p_least integer) returns millpond.candidate[]
language sql as $$
  select coalesce(array_agg((head.ctid, null, null, head.priority, head.cost, head.bytes, null, null, null, null, null, null, null, null)::millpond.candidate), '{}') from (
    select ready.* from generate_series(1, 10 - p_least) as level(nth) cross join lateral (
      select w.* from millpond.lines as line cross join lateral (
        select ctid, priority, seq, cost, coalesce(octet_length(data), octet_length(data_bytes), 0) as bytes from millpond.waiting
        where queue = p_queue and waiting.line = line.line and not scheduled and priority = (10 - level.nth)::smallint and seq >= line.places[level.nth]
        order by seq limit p_most for update skip locked
      ) as w where line.queue = p_queue order by w.seq limit p_most
    ) as ready limit p_most
  ) as head
$$;

-- The claim of a queue with limits. Out: jobs as of `claim`, in the order of their starts; wait: ms until a rate or pause allows another start, 0 where
-- more may wait that was not looked at, null: not known.
create or replace function millpond.claim_limited(
  p_queue integer, p_worker text, p_limit integer, p_least integer, p_now bigint, p_holds bigint, p_fences bigint,
  out jobs text, out count integer, out wait bigint, out limited boolean
) language plpgsql as $$
declare
  v_large   constant bigint := 16777216;
  v_limits  millpond.limits;
  v_free    bigint  := p_limit;
  v_rest    boolean := false;
  v_stopped boolean := false;
  v_found   millpond.candidate[];
  v_taken   integer := 0;
  v_bytes   bigint  := 0;
  v_full    bigint;
  v_ctids   tid[]   := '{}';
  v_nths    bigint[];
  v_passed  integer[];
begin
  count := 0;
  -- It remembers rows that are never asked for twice, which takes four times as long as to read them. Unknown before PostgreSQL 14.
  if current_setting('enable_memoize', true) is not null then perform set_config('enable_memoize', 'off', true); end if;
  select * into v_limits from millpond.limits where queue = p_queue;
  limited := v_limits.running is not null or (v_limits.rate).count is not null or (v_limits.group_rate).count is not null;
  if v_limits.adopt_until is not null then
    perform millpond.adopt_running(p_queue, case when v_limits.grouped then -1 else -2 end);
    if v_limits.adopt_until < clock_timestamp() then update millpond.limits set adopt_until = null where queue = p_queue; end if;
  end if;
  if v_limits.running is not null then
    v_free := v_limits.running - (
      select count(*) from (select from millpond.running where queue = p_queue and line < 0 limit v_limits.running) as slot);
    if v_free <= 0 then return; end if;
  end if;
  wait := greatest(0, v_limits.paused_until - p_now, millpond.rate_wait(v_limits.rate, v_limits.full_at, 1, p_now));
  if wait > 0 then return; end if;
  wait := null;
  -- One more than may start tells whether it was the limit that stopped us.
  if v_limits.grouped then
    v_rest := millpond.adopt_waiting(p_queue) = 1000;
    v_limits := millpond.place_arrivals(v_limits, p_now);
    v_found := millpond.by_turns(v_limits, least(p_limit, v_free + 1)::integer, p_least, p_now);
  else
    v_found := millpond.by_place(p_queue, least(p_limit, v_free + 1)::integer, p_least);
  end if;
  v_full := v_limits.full_at;
  for v_nth in 1 .. cardinality(v_found) loop
    if v_nth > v_free then
      v_stopped := true;
      exit;
    end if;
    if (v_limits.rate).count is not null then
      wait := millpond.rate_wait(v_limits.rate, v_full, v_found[v_nth].cost, p_now);
      if wait > 0 then
        v_stopped := true;
        exit;
      end if;
      wait := null;
      v_full := greatest(v_full, p_now * 1000) + v_found[v_nth].cost * millpond.step_of(v_limits.rate);
    end if;
    if v_bytes >= v_large then
      v_rest := true;
      exit;
    end if;
    v_bytes := v_bytes + v_found[v_nth].bytes;
    v_ctids[v_nth] := v_found[v_nth].ctid;
  end loop;
  if cardinality(v_ctids) > 0 then
    with taken as (
      delete from millpond.waiting as w using unnest(v_ctids) with ordinality as job(at, nth) where w.ctid = job.at returning w.*, job.nth
    ), moved as (
      insert into millpond.running (seq, pushed_at, due_at, timeout, started_at, id, queue, fence, attempt, attempts, priority, cost, line, key,
        "group", trace, worker, encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error, lease_until)
      select seq, pushed_at, due_at, timeout, p_now, id, queue, greatest(fence, p_fences) + 1, attempt + 1, attempts, priority, cost,
        case when v_limits.grouped then -1 else -2 end, key,
        "group", trace, p_worker, encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error, p_now + p_holds
      from taken
    )
    select '[' || string_agg(
        '["' || id || '",' || greatest(fence, p_fences) + 1 || ',' || attempt + 1 || ',' || attempts || ',' || priority || ',' || pushed_at || ',' || due_at || ',' ||
          to_json(coalesce(data, encode(data_bytes, 'base64'))) || ',' || json_build_array(key, "group", timeout, trace, encoding) || ']',
        ',' order by nth) || ']',
      count(*), array_agg(nth), array_agg(line) filter (where line >= 0 and millpond.is_milestone(line, seq))
    into jobs, count, v_nths, v_passed from taken;
    insert into millpond.moves (queue, slot, was, becomes, count) values (p_queue, -1, 'waiting', 'running', count);
    if v_passed is not null then
      perform millpond.advance(p_queue, (select q.line from millpond.queues as q where q.id = p_queue) = any (v_passed));
    end if;
    -- By what was taken: somebody may have cancelled a job meanwhile.
    if (v_limits.rate).count is not null then
      select greatest(v_limits.full_at, p_now * 1000) + sum(v_found[nth].cost) * millpond.step_of(v_limits.rate) into v_full from unnest(v_nths) as nth;
      update millpond.limits set full_at = v_full where queue = p_queue;
    end if;
    if v_limits.grouped then
      perform millpond.start_groups(v_limits, array(select v_found[nth] from unnest(v_nths) as nth), p_now);
    end if;
  end if;
  if count = p_limit then wait := null;
  elsif v_rest or not v_stopped and v_limits.grouped and (
    exists (select from millpond.arrivals where queue = p_queue)
    or exists (select from generate_series(p_least, 9) as level(nth) cross join lateral (
      select from millpond.tickets where queue = p_queue and priority = level.nth::smallint and turn >= v_limits.marks[level.nth + 1] limit 1
    ) as ticket)) then wait := 0;
  elsif not v_stopped and v_limits.grouped then
    select held_until - p_now into wait from millpond.groups where queue = p_queue and held_until is not null order by held_until limit 1;
  end if;
end $$;

-- For release: claims are given back, each with its pause, or else its start.
create or replace function millpond.unstart(p_queue integer, p_now bigint, p_jobs millpond.started[]) returns void
language plpgsql as $$
declare
  v_limits millpond.limits;
  v_back   record;
begin
  insert into millpond.limits (queue) values (p_queue) on conflict do nothing;
  select * into v_limits from millpond.limits where queue = p_queue for update;
  select max(p_now + pause) filter (where pause > 0 and ("group" is null or not v_limits.grouped)) as paused_until,
    sum(least(cost * millpond.step_of(v_limits.rate), greatest(0, (started_at - p_now) * 1000 + cost * millpond.step_of(v_limits.rate))))
      filter (where coalesce(pause, 0) = 0) as paid
  into v_back from unnest(p_jobs) as job;
  v_limits.paused_until := greatest(v_limits.paused_until, v_back.paused_until);
  update millpond.limits set paused_until = v_limits.paused_until, full_at = full_at - coalesce(v_back.paid, 0) where queue = p_queue;
  perform millpond.use_limits(p_queue, v_limits);
  if not v_limits.grouped then return; end if;
  -- As claims do: first those that are not known, then the others, in the order of their names.
  insert into millpond.groups (queue, name) select distinct p_queue, coalesce("group", '') from unnest(p_jobs) as job order by 2 on conflict do nothing;
  for v_back in
    select coalesce("group", '') as name, max(p_now + pause) filter (where pause > 0 and "group" is not null) as paused_until, array_agg(job) as jobs
    from unnest(p_jobs) as job group by 1 order by 1
  loop
    update millpond.groups as g set paused_until = greatest(g.paused_until, v_back.paused_until), full_at = g.full_at - coalesce((
      select sum(least(cost * step, greatest(0, (started_at - p_now) * 1000 + cost * step)))
      from unnest(v_back.jobs) as job, lateral (
        select millpond.step_of(case when (g.rate).count is not null then g.rate when g.name <> '' then v_limits.group_rate end) as step) as price
      where coalesce(pause, 0) = 0), 0)
    where queue = p_queue and name = v_back.name;
  end loop;
  insert into millpond.arrivals (queue, groups) select p_queue, array_agg(distinct coalesce("group", '')) from unnest(p_jobs) as job;
end $$;

-- For the sweep: forgets groups that have been idle for long enough; `p_from`: all before that were dealt with. Returns how many it has looked at, `p_limit`
-- at the most. One that has waiting jobs by now has arrived: the next claim places it.
create or replace function millpond.forget_groups(p_limit integer, p_now bigint, p_from bigint) returns bigint
language sql as $$
  with looked as materialized (
    select g.ctid as at, exists (
      select from millpond.waiting as w
      where w.queue = g.queue and coalesce(w."group", '') = g.name and not w.scheduled and w.line = -1) as arrived
    from millpond.groups as g where g.forget_at <= p_now and g.forget_at >= p_from order by g.forget_at limit p_limit
    for update of g skip locked
  ), kept as (
    update millpond.groups set forget_at = null where ctid = any (array(select at from looked where arrived))
  ), gone as (
    delete from millpond.groups where ctid = any (array(select at from looked where not arrived))
  )
  select count(*) from looked
$$;

-- For the sweep: forgets pauses that are over, of queues that have nothing else.
create or replace function millpond.forget_pauses(p_now bigint) returns void
language plpgsql as $$
begin
  if exists (select from millpond.queues where limits = 'queue') then
    update millpond.queues set limits = null where limits = 'queue' and id in (
      select queue from millpond.limits where running is null and (rate).count is null and paused_until <= p_now for update skip locked);
  end if;
end $$;
