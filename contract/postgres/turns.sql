-- turns: which groups of a grouped queue may start a job, and in which order. Part of claim.
--
--   arrivals --fold--+-> ticket: by priority of the first job, then virtual time, then place of that job
--      ^             +-> held_until: its rate or pause allows a start later
--      |             +-> forget_at: no job waits or runs, and it has no limits of its own: the sweep may forget it then
--      |             +-> none of these: as many jobs run as may
--      +-- a job of the group begins or ceases to wait or to run; its limits change
--
-- A claim locks the queue's row of `turns` and holds it to its end. Each of its steps is a statement that begins after it has the lock,
-- so it sees all that earlier claims did. In turn: `fold`, `by_turns`, the starts, `start_groups`.
-- Invariant: whatever changes what a group waits for writes an arrival in the same transaction. `place_groups` looks at a group in a
--      statement that does not begin before the one that took the arrival. So what it cannot see yet has an arrival that is still to
--      come, and no group is left.
-- Invariant: a slot is a row of `running`. Only the claim that holds the lock adds one, so a count never misses any.

-- What groups wait for now. Called for those that arrived, and for those that started a job. `p_virtual`: the queue's virtual times. A
-- ticket that is new at its priority begins at the priority's virtual time, if its own is lower: to wait or to idle earns no credit.
create or replace function millpond.place_groups(p_limits millpond.limits, p_virtual double precision[], p_names text[],
  p_now bigint) returns void
language plpgsql as $$
begin
  with seen as (
    select known.ctid, known.ticket as old_ticket, known.virtual_time as old_virtual, known.place as old_place,
      case when first.place is null then known.full_at
        else millpond.full_of(most.rate, known.full_at, known.full_cost, p_now) end as full_at,
      case when first.place is null then known.paused_until
        else millpond.pause_end(known.paused_until, known.pause_length, p_now) end as paused_until,
          p_now + nullif(free.wait, 0) as held_until,
      case when free.wait = 0 then first.priority end as ticket, case when free.wait = 0 then first.place end as place,
      case when free.wait = 0 then case when known.ticket = first.priority then known.virtual_time
        else greatest(known.virtual[first.priority + 1], p_virtual[first.priority + 1]) end end as virtual_time,
      -- 10 s after it was found idle: by then what its virtual time is ahead matters little.
      case when first.place is null and own.name is null and not exists (
          select from millpond.running where queue = p_limits.queue and coalesce("group", '') = known.name and line = -1)
        then greatest(p_now + 10000, (known.full_at + 999) / 1000,
          millpond.pause_end(known.paused_until, known.pause_length, p_now)) end as forget_at
    from unnest(p_names) as given(name)
    cross join lateral (select ctid, * from millpond.groups where queue = p_limits.queue and groups.name = given.name offset 0) as known
    left join lateral (select * from millpond.group_limits where queue = p_limits.queue
      and group_limits.name = given.name offset 0) as own on true
    left join lateral (
      select priority, place, cost from millpond.waiting
      where queue = p_limits.queue and coalesce("group", '') = given.name and state = 'waiting' and line = -1
      order by priority desc, place limit 1
    ) as first on true
    cross join lateral (
      select case when given.name = '' then own.running else coalesce(own.running, p_limits.group_running) end as running,
        millpond.rate_of(p_limits, given.name, own.rate) as rate offset 0
    ) as most
    cross join lateral (
      select case when first.place is not null and (most.running is null or most.running > (
          select count(*) from millpond.running where queue = p_limits.queue and coalesce("group", '') = given.name and line = -1))
        then greatest(0, millpond.pause_end(known.paused_until, known.pause_length, p_now) - p_now,
          millpond.rate_wait(most.rate, known.full_at, known.full_cost, first.cost, p_now)) end as wait offset 0
    ) as free
  ), placed as (
    update millpond.groups as g
    set ticket = seen.ticket, virtual_time = seen.virtual_time, place = seen.place, held_until = seen.held_until,
      forget_at = seen.forget_at,
      full_at = seen.full_at, paused_until = seen.paused_until
    from seen
    where g.ctid = seen.ctid and (g.ticket, g.virtual_time, g.place, g.held_until, g.forget_at, g.full_at, g.paused_until)
      is distinct from (seen.ticket, seen.virtual_time, seen.place, seen.held_until, seen.forget_at, seen.full_at, seen.paused_until)
    returning g.name, g.ticket, g.virtual_time, g.place, seen.old_ticket, seen.old_virtual, seen.old_place
  ), gone as (
    delete from millpond.tickets where ctid = any (array(
      select t.at from placed cross join lateral (
        select ctid as at from millpond.tickets
        where queue = p_limits.queue and priority = placed.old_ticket and virtual_time = placed.old_virtual
          and place = placed.old_place offset 0
      ) as t where placed.old_ticket is not null))
  )
  insert into millpond.tickets (queue, priority, virtual_time, place, name)
  select p_limits.queue, ticket, virtual_time, place, name from placed where ticket is not null;
end $$;

-- Folds the inbox into the groups' state, and those whose time has come. Returns `turns` as it is then.
create or replace function millpond.fold(inout p_turns millpond.turns, p_limits millpond.limits, p_now bigint)
language plpgsql as $$
declare
  v_most     constant integer := 10000;
  v_names    text[];
  v_released millpond.released[];
begin
  -- All groups are placed anew where settings have changed, or the clock went back. (Claims may cross by some ms.)
  if p_turns.version <> p_limits.version or p_now < p_turns.claimed_at - 1000 then
    insert into millpond.arrivals (queue, groups)
    select p_turns.queue, array_agg(name) from (
      select name, row_number() over () / 1000 as part from millpond.groups
      where queue = p_turns.queue and forget_at is null
    ) as each group by part;
    update millpond.turns set version = p_limits.version, claimed_at = p_now where queue = p_turns.queue returning * into p_turns;
  end if;
  -- As many arrivals as name v_most groups. A group that many pushes have named is looked at once.
  with next as (
    select id, groups, sum(cardinality(groups)) over (order by id rows between unbounded preceding and 1 preceding) as before
    from (select id, groups from millpond.arrivals where queue = p_turns.queue order by id limit 1000) as first
  ), named as (
    select id, row_number() over (partition by name order by id) as nth from next left join lateral unnest(groups) as name on true
    where before is null or before < 10 * v_most
  ), counted as (
    select id, sum(count(*) filter (where nth = 1)) over (order by id) as names, row_number() over (order by id) as nth
    from named group by id
  ), gone as (
    delete from millpond.arrivals where queue = p_turns.queue
      and id = any (array(select id from counted where nth = 1 or names <= v_most))
    returning id, groups, freed, released
  ), arrived as (
    select name, bool_and(freed) as freed from (select unnest(groups) as name, freed from gone) as each group by name
    union all
    (select name, false from millpond.groups where queue = p_turns.queue and held_until <= p_now limit v_most)
  )
  select array(
      select distinct name from arrived
      where not freed or not exists (
        select from millpond.groups
        where queue = p_turns.queue and groups.name = arrived.name and (ticket is not null or held_until is not null) offset 0)
      order by name),
    (select array_agg(row(job."group", started_at, cost, pause, at, rate, group_rate)::millpond.released order by gone.id, nth)
      from gone cross join lateral unnest(gone.released)
        with ordinality as job("group", started_at, cost, pause, at, rate, group_rate, nth))
  into v_names, v_released;
  if v_names = '{}' and v_released is null then return; end if;
  insert into millpond.groups (queue, name)
  select p_turns.queue, arrived.name from unnest(v_names) as arrived(name)
  where not exists (select from millpond.groups where queue = p_turns.queue and groups.name = arrived.name offset 0) order by arrived.name;
  if v_released is not null then
    update millpond.groups as g set
      paused_until = case when back.longer then (back.pause).at + (back.pause).pause else g.paused_until end,
      pause_length = case when back.longer then (back.pause).pause else g.pause_length end,
      full_at = millpond.after_releases(g.full_at, g.full_cost, back.released, true)
    from (
      select known.ctid, each.pause, coalesce(
          (each.pause).at + (each.pause).pause > millpond.pause_end(known.paused_until, known.pause_length, (each.pause).at),
            false) as longer, each.released
      from (
        select coalesce("group", '') as name, array_agg(job::millpond.released) as released,
          (array_agg(job::millpond.released order by at + pause desc) filter (where pause > 0 and "group" is not null))[1] as pause
        from unnest(v_released) as job group by 1
      ) as each
      cross join lateral (select ctid, * from millpond.groups where queue = p_turns.queue and groups.name = each.name offset 0) as known
    ) as back where g.ctid = back.ctid;
    update millpond.turns set full_at = millpond.after_releases(full_at, full_cost, v_released, false) where queue = p_turns.queue;
  end if;
  -- The time is noted as groups may be held from now on.
  update millpond.turns set claimed_at = p_now where queue = p_turns.queue returning * into p_turns;
  perform millpond.place_groups(p_limits, p_turns.virtual, v_names, p_now);
end $$;

-- The first jobs by turns, `p_most` at the most. A turn is worth up to `p_each` jobs of one priority. A few jobs of each group are
-- looked at: more where a group might give more.
create or replace function millpond.by_turns(
  p_turns millpond.turns, p_limits millpond.limits, p_most integer, p_least integer, p_each integer, p_now bigint
) returns millpond.candidate[]
language plpgsql as $$
declare
  v_names  text[] := array(
    select name from millpond.tickets where queue = p_turns.queue and priority >= p_least
    order by priority desc, virtual_time, place limit p_most);
  v_look   integer;
  v_greedy boolean;
  v_jobs   millpond.candidate[];
begin
  if v_names = '{}' then return '{}'; end if;
  v_look := p_each + (2 * p_most - 1) / cardinality(v_names);
  loop
    with open as materialized (
      select known.name, known.full_at, known.full_cost, known.ticket, known.virtual_time, known.virtual, coalesce(own.weight, 1) as weight,
        millpond.rate_of(p_limits, known.name, own.rate) as rate, most.running - case when most.running is not null then (
          select count(*) from millpond.running where queue = p_turns.queue and coalesce("group", '') = known.name
            and line = -1) end as free
      from unnest(v_names) as given(name)
      cross join lateral (select * from millpond.groups where queue = p_turns.queue and groups.name = given.name offset 0) as known
      left join lateral (select * from millpond.group_limits where queue = p_turns.queue
        and group_limits.name = given.name offset 0) as own on true
      cross join lateral (
        select case when given.name = '' then own.running else coalesce(own.running, p_limits.group_running) end as running offset 0
      ) as most
    ), looked as (
      select open.*, job.*,
        case when -job.level = open.ticket then open.virtual_time else greatest(open.virtual[1 - job.level],
          p_turns.virtual[1 - job.level]) end as base
      from open cross join lateral (
        select w.ctid, -w.priority as level, w.place, w.cost, coalesce(octet_length(w.data), octet_length(w.data_bytes), 0) as bytes
        from millpond.waiting as w
        where w.queue = p_turns.queue and coalesce(w."group", '') = open.name and w.state = 'waiting' and w.line = -1
        order by w.priority desc, w.place limit least(v_look, case when open.free < 0 then 0 else open.free end)
      ) as job
    ), numbered as (
      select looked.*, row_number() over jobs as nth, sum(cost) over jobs - cost as before,
        coalesce(lag(cost) over jobs, full_cost) as paid_cost,
        (row_number() over (partition by name, level order by place) - 1) / p_each as part,
        case when lag(level) over jobs = level then lag(cost) over jobs / weight else base end as step
      from looked window jobs as (partition by name order by level, place rows unbounded preceding)
    ), timed as (
      select numbered.*, sum(step) over (partition by name, level order by place rows unbounded preceding) as virtual_at,
        bool_and(rate is null or millpond.rate_wait(rate,
          case when before = 0 then full_at else greatest(millpond.full_of(rate, full_at, full_cost, p_now),
            p_now * 1000) + before * millpond.step_of(rate) end,
          paid_cost, cost, p_now) <= 0) over (partition by name order by level, place rows unbounded preceding) as startable
      from numbered
    ), chosen as (
      select timed.*, first_value(virtual_at) over (partition by name, level, part order by place) as virtual_of_part,
        first_value(place) over (partition by name, level, part order by place) as place_of_part
      from timed where startable and -level >= p_least
      order by level, virtual_of_part, place_of_part, place limit p_most
    )
    select array_agg((ctid, name, nth, -level, cost, bytes, virtual_of_part, virtual_at + cost / weight)::millpond.candidate order by level,
      virtual_of_part, place_of_part, place),
      bool_or(nth = v_look and free is distinct from nth)
    into v_jobs, v_greedy from chosen
    -- Seen with the same snapshot as the jobs: a release that pauses a group or the queue gives its job back in the same commit.
    where not exists (select from millpond.arrivals where queue = p_turns.queue and released is not null)
      and (select not q.paused and millpond.pause_end(q.paused_until, q.pause_length, p_now) <= p_now from millpond.queues as q
        where q.id = p_turns.queue);
    exit when v_look > p_most or v_greedy is not true;
    v_look := v_look * 4;
  end loop;
  return coalesce(v_jobs, '{}');
end $$;

-- Jobs have been started: their groups' times go on, and so does the queue's. What the groups wait for now is looked up anew.
create or replace function millpond.start_groups(p_turns millpond.turns, p_limits millpond.limits, p_jobs millpond.candidate[],
  p_now bigint) returns void
language plpgsql as $$
declare
  v_level   record;
  v_virtual double precision[] := p_turns.virtual;
  v_names   text[] := array(select distinct name from unnest(p_jobs) as job order by name);
begin
  delete from millpond.tickets where ctid = any (array(
    select t.at from unnest(v_names) as given(name)
    cross join lateral (select * from millpond.groups where queue = p_turns.queue and groups.name = given.name offset 0) as known
    cross join lateral (
      select ctid as at from millpond.tickets
      where queue = p_turns.queue and priority = known.ticket and virtual_time = known.virtual_time and place = known.place offset 0
    ) as t));
  for v_level in
    select priority, max(virtual_time) as virtual_time from unnest(p_jobs) as job group by priority order by priority desc
  loop
    v_virtual[v_level.priority + 1] := greatest(v_virtual[v_level.priority + 1], v_level.virtual_time);
    update millpond.groups as g
    set virtual[v_level.priority + 1] = job.after, ticket = v_level.priority, virtual_time = job.after, place = null, full_at = job.full_at,
      full_cost = job.cost
    from (
      select known.ctid as at, last.after, last.cost, case when paid.rate is null then known.full_at
        else greatest(millpond.full_of(paid.rate, known.full_at, known.full_cost, p_now),
          p_now * 1000) + last.costs * millpond.step_of(paid.rate) end as full_at
      from (
        select distinct on (name) *, sum(each.cost) over (partition by name)::bigint as costs
        from unnest(p_jobs) as each where priority = v_level.priority order by name, nth desc
      ) as last
      cross join lateral (select ctid, * from millpond.groups where queue = p_turns.queue and groups.name = last.name offset 0) as known
      left join lateral (select * from millpond.group_limits where queue = p_turns.queue
        and group_limits.name = last.name offset 0) as own on true
      cross join lateral (select millpond.rate_of(p_limits, last.name, own.rate) as rate offset 0) as paid
    ) as job
    where g.ctid = job.at;
  end loop;
  update millpond.turns set virtual = v_virtual, claimed_at = p_now where queue = p_turns.queue;
  perform millpond.place_groups(p_limits, v_virtual, v_names, p_now);
end $$;
