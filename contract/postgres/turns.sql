-- turns: which groups of a grouped queue may start a job, and in which order. Part of claim.
--
--   arrivals ──next claim──┬─► ticket: by priority of the first job, then virtual time, then place of that job
--      ▲                   ├─► held_until: its rate or pause allows a start later
--      │                   ├─► forget_at: no job waits or runs, and it has no limits of its own: the sweep may forget it then
--      │                   └─► none of these: as many jobs run as may
--      └── a job of the group begins or ceases to wait or to run; its limits change
--
-- Invariant: a claim locks the rows of the groups that it looks at, and looks at their jobs in statements that begin after it has them: so the running jobs
--      that it counts are all. It passes over groups that another claim has, and leaves their arrivals to the next claim: then it answers that there may
--      be more. Only claims of a queue with a limit of running jobs or a rate follow each other: they hold its row of
--      `limits`, from before they lock a group. No other claim waits for that row.

-- What a group waits for where its first job is this one and it has that many slots: ms until its rate and pause allow the start, 0: for its turn; null: for a
-- slot, or for a job.
create or replace function millpond.wait_of(p_slots bigint, p_paused_until bigint, p_rate millpond.rate, p_full bigint, p_cost integer, p_now bigint) returns bigint
language sql immutable as $$
  select case when p_cost is not null and (p_slots > 0 or p_slots is null) then
    greatest(0, p_paused_until - p_now, millpond.rate_wait(p_rate, p_full, p_cost, p_now)) end
$$;

-- Takes the arrivals, and the groups whose time has come: what do they wait for now? A ticket that is new at its priority begins at the priority's
-- virtual time, if its own is lower: to wait or to idle earns no credit. Returns the limits as they are now: arrivals may tell of new ones.
create or replace function millpond.place_arrivals(inout p_limits millpond.limits, p_now bigint)
language plpgsql as $$
declare
  v_most   constant integer := 10000;
  v_names  text[];
  v_levels smallint[];
  v_places bigint[];
  v_oldest xid;
  v_ctids  tid[];
begin
  with next as (
    select ctid, sum(cardinality(groups)) over (rows between unbounded preceding and 1 preceding) as before
    from (select ctid, groups from millpond.arrivals where queue = p_limits.queue limit 1000 for update skip locked) as free
  ), gone as (
    delete from millpond.arrivals where ctid = any (array(select ctid from next where before is null or before < v_most)) returning groups, priority, place
  )
  select array_agg(name), array_agg(priority), array_agg(place) into v_names, v_levels, v_places from (
    select name, max(priority) as priority, min(place) as place from (
      select unnest(groups) as name, priority, place from gone
      union all (select name, 10, null from millpond.groups where queue = p_limits.queue and held_until <= p_now limit v_most)
    ) as each group by name
  ) as arrived;
  if v_names is null then return; end if;
  -- Most have a ticket, and keep it. That is certain where nobody who is not done has locked or changed the row when it is read here (xmax: who made the row,
  -- who had ended before, or 0, which is infinitely old): whoever locks it later looks at its jobs later, too, and sees what the arrival tells of.
  v_oldest := pg_snapshot_xmin(pg_current_snapshot())::xid;
  select array_agg(arrived.name), array_agg(arrived.priority), array_agg(arrived.place) into v_names, v_levels, v_places
  from unnest(v_names, v_levels, v_places) as arrived(name, priority, place)
  where not exists (
    select from millpond.groups as known where queue = p_limits.queue and known.name = arrived.name
      and (known.ticket > arrived.priority or known.ticket = arrived.priority and known.head <= arrived.place)
      and (known.xmax = known.xmin or age(known.xmax) > age(v_oldest))
    offset 0);
  if v_names is null then return; end if;
  -- In the order of their names: of two claims that make the same groups one waits for the other, never both.
  insert into millpond.groups (queue, name)
  select p_limits.queue, arrived.name from unnest(v_names) as arrived(name)
  where not exists (select from millpond.groups where queue = p_limits.queue and groups.name = arrived.name offset 0) order by arrived.name
  on conflict do nothing;
  with locked as materialized (
    select arrived.*, (select ctid from millpond.groups where queue = p_limits.queue and groups.name = arrived.name for update skip locked) as at
    from unnest(v_names, v_levels, v_places) as arrived(name, priority, place)
  ), later as (
    insert into millpond.arrivals (queue, groups, priority, place)
    select p_limits.queue, array_agg(name), priority, place from locked where locked.at is null group by priority, place
  )
  select array_agg(locked.at) into v_ctids from locked where locked.at is not null;
  if v_ctids is null then return; end if;
  -- From before the queue's virtual times are read until the tickets that begin at them can be seen: see start_groups.
  perform pg_advisory_xact_lock_shared(hashtext('millpond turn'), p_limits.queue);
  -- Statements of their own: they see all that was done under these locks before, and all that the arrivals tell of.
  select * into p_limits from millpond.limits where queue = p_limits.queue;
  with seen as (
    select known.ctid, known.ticket as old_ticket, known.turn as old_turn, known.head as old_head, p_now + nullif(free.wait, 0) as held_until,
      case when free.wait = 0 then first.priority end as ticket, case when free.wait = 0 then first.seq end as head,
      case when free.wait = 0 then case when known.ticket = first.priority then known.turn
        else greatest(known.virtual[first.priority + 1], p_limits.virtual[first.priority + 1]) end end as turn,
      -- 10 s after it was found idle: by then what its virtual time is ahead matters little.
      case when first.seq is null and not known.own and not exists (
          select from millpond.running where queue = p_limits.queue and coalesce("group", '') = known.name and line = -1)
        then greatest(p_now + 10000, (known.full_at + 999) / 1000, known.paused_until) end as forget_at
    from millpond.groups as known
    left join lateral (
      select priority, seq, cost from millpond.waiting
      where queue = p_limits.queue and coalesce("group", '') = known.name and not scheduled and line = -1
      order by priority desc, seq limit 1
    ) as first on true
    cross join lateral (
      select case when known.name = '' then known.running else coalesce(known.running, p_limits.group_running) end - (
          select count(*) from millpond.running where queue = p_limits.queue and coalesce("group", '') = known.name and line = -1) as slots,
        case when (known.rate).count is not null then known.rate when known.name <> '' then p_limits.group_rate end as rate
      offset 0
    ) as most
    cross join lateral (
      select millpond.wait_of(most.slots, known.paused_until, most.rate, known.full_at, first.cost, p_now) as wait offset 0
    ) as free
    where known.ctid = any (v_ctids)
  ), placed as (
    update millpond.groups as g set ticket = seen.ticket, turn = seen.turn, head = seen.head, held_until = seen.held_until, forget_at = seen.forget_at
    from seen where g.ctid = seen.ctid
      and (g.ticket, g.turn, g.head, g.held_until, g.forget_at) is distinct from (seen.ticket, seen.turn, seen.head, seen.held_until, seen.forget_at)
    returning g.name, g.ticket, g.turn, g.head, seen.old_ticket, seen.old_turn, seen.old_head
  ), gone as (
    -- Each is looked up (offset 0): a plan from when there were few tickets would compare all of them with each.
    delete from millpond.tickets where ctid = any (array(
      select t.at from placed cross join lateral (
        select ctid as at from millpond.tickets
        where queue = p_limits.queue and priority = placed.old_ticket and turn = placed.old_turn and head = placed.old_head offset 0
      ) as t where placed.old_ticket is not null))
  )
  insert into millpond.tickets (queue, priority, turn, head, name)
  select p_limits.queue, ticket, turn, head, name from placed where ticket is not null;
end $$;

-- The first jobs by turns, `p_most` at the most, of groups that no other claim has. A group's jobs are looked at a few at a time: more where it might
-- give more.
create or replace function millpond.by_turns(p_limits millpond.limits, p_most integer, p_least integer, p_now bigint) returns millpond.candidate[]
language plpgsql as $$
declare
  v_tickets tid[];
  v_groups  tid[];
  v_each    integer;
  v_greedy  boolean;
  v_jobs    millpond.candidate[];
begin
  -- A ticket that another claim has replaced meanwhile is not its group's any more.
  select array_agg(ticket), array_agg(known) into v_tickets, v_groups from (
    select t.ctid as ticket, g.ctid as known from (
      select each.* from generate_series(9, p_least, -1) as level(priority) cross join lateral (
        select ctid, * from millpond.tickets
        where queue = p_limits.queue and tickets.priority = level.priority::smallint and turn >= p_limits.marks[level.priority + 1] order by turn, head
      ) as each offset 0
    ) as t cross join lateral (
      select ctid from millpond.groups
      where queue = p_limits.queue and groups.name = t.name and groups.ticket = t.priority and groups.turn = t.turn and groups.head = t.head
      for update skip locked
    ) as g limit p_most
  ) as locked;
  if v_tickets is null then return '{}'; end if;
  v_each := 1 + (2 * p_most - 1) / cardinality(v_tickets);
  loop
    with open as materialized (
      select given.rank, given.at, given.known, g.name, g.weight, g.full_at, g.ticket, g.turn, g.virtual,
        case when (g.rate).count is not null then g.rate when g.name <> '' then p_limits.group_rate end as paid,
        case when g.name = '' then g.running else coalesce(g.running, p_limits.group_running) end - (
          select count(*) from millpond.running where queue = p_limits.queue and coalesce("group", '') = g.name and line = -1) as free
      from unnest(v_tickets, v_groups) with ordinality as given(at, known, rank) join millpond.groups as g on g.ctid = given.known where g.paused_until <= p_now
    ), looked as (
      select open.rank, open.at, open.known, open.name, open.weight, open.paid, open.full_at, open.free, job.*,
        case when -job.level = open.ticket then open.turn else greatest(open.virtual[1 - job.level], p_limits.virtual[1 - job.level]) end as base
      from open cross join lateral (
        select w.ctid, -w.priority as level, w.seq, w.cost, coalesce(octet_length(w.data), octet_length(w.data_bytes), 0) as bytes
        from millpond.waiting as w
        where w.queue = p_limits.queue and coalesce(w."group", '') = open.name and not w.scheduled and w.line = -1
        order by w.priority desc, w.seq
        limit least(v_each, case when open.free >= 0 then open.free + 1 when open.free < 0 then 1 end)
      ) as job
    ), numbered as (
      select looked.*, row_number() over jobs as nth, sum(cost) over jobs - cost as before,
        lead(level) over jobs as next_level, lead(seq) over jobs as next_seq, lead(cost) over jobs as next_cost,
        case when lag(level) over jobs = level then lag(cost) over jobs / weight else base end as part
      from looked window jobs as (partition by rank order by level, seq rows unbounded preceding)
    ), startable as (
      select numbered.*, sum(part) over (partition by rank, level order by seq rows unbounded preceding) as turn,
        bool_and(paid is null or coalesce(millpond.rate_wait(paid,
          case when before = 0 then full_at else greatest(full_at, p_now * 1000) + before * millpond.step_of(paid) end, cost, p_now) <= 0, true))
          over (partition by rank order by level, seq rows unbounded preceding) as startable
      from numbered
    ), chosen as (
      select * from startable where startable and -level >= p_least and (nth <= free or free is null) order by level, turn, seq limit p_most
    )
    select array_agg((ctid, name, nth, -level, cost, bytes, turn, turn + cost / weight, free - nth, -next_level, next_seq, next_cost, at, known)::millpond.candidate),
      bool_or(nth = v_each and free is distinct from nth)
    into v_jobs, v_greedy from chosen;
    exit when v_each > p_most or v_greedy is not true;
    v_each := v_each * 4;
  end loop;
  return coalesce(v_jobs, '{}');
end $$;

-- Jobs have been started: their groups' times go on, and what they wait for now is known.
create or replace function millpond.start_groups(p_limits millpond.limits, p_jobs millpond.candidate[], p_now bigint) returns void
language plpgsql as $$
declare
  v_virtual double precision[] := p_limits.virtual;
  v_level   record;
  v_levels  integer := 0;
  v_alone   boolean;
begin
  -- Some get a ticket of another priority, which begins at that one's virtual time: as in place_arrivals.
  if exists (select from unnest(p_jobs) as job where next_priority <> priority) then
    perform pg_advisory_xact_lock_shared(hashtext('millpond turn'), p_limits.queue);
    select * into p_limits from millpond.limits where queue = p_limits.queue;
  end if;
  delete from millpond.tickets where ctid = any (array(select ticket from unnest(p_jobs) as job));
  for v_level in
    select priority, max(turn) as turn from unnest(p_jobs) as job group by priority order by priority desc
  loop
    v_virtual[v_level.priority + 1] := greatest(v_virtual[v_level.priority + 1], v_level.turn);
    -- The groups whose last job has this priority.
    with job as (
      select last.known, last.after, last.next_priority, last.next_seq, paid.full_at, millpond.wait_of(last.free, known.paused_until, most.rate, paid.full_at, last.next_cost, p_now) as wait
      from (
        select distinct on (known) *, sum(cost) over (partition by known)::bigint as costs from unnest(p_jobs) as job order by known, nth desc
      ) as last
      cross join lateral (select * from millpond.groups where ctid = last.known offset 0) as known
      cross join lateral (
        select case when (known.rate).count is not null then known.rate when known.name <> '' then p_limits.group_rate end as rate offset 0
      ) as most
      cross join lateral (
        select coalesce(greatest(known.full_at, p_now * 1000) + last.costs * millpond.step_of(most.rate), known.full_at) as full_at offset 0
      ) as paid
      where last.priority = v_level.priority
    ), started as (
      update millpond.groups as g set virtual[v_level.priority + 1] = job.after, full_at = job.full_at, held_until = p_now + nullif(job.wait, 0),
        ticket = case when job.wait = 0 then job.next_priority end, head = case when job.wait = 0 then job.next_seq end,
        turn = case when job.wait = 0 then case when job.next_priority = v_level.priority then job.after
          else greatest(g.virtual[job.next_priority + 1], p_limits.virtual[job.next_priority + 1]) end end
      from job where g.ctid = job.known
      returning g.name, g.ticket, g.turn, g.head
    )
    insert into millpond.tickets (queue, priority, turn, head, name)
    select p_limits.queue, ticket, turn, head, name from started where ticket is not null;
    v_levels := v_levels + 1;
  end loop;
  if v_levels > 1 then
    -- Priorities of their jobs before the last one.
    for v_level in select priority from unnest(p_jobs) as job group by priority loop
      update millpond.groups as g set virtual[v_level.priority + 1] = job.after
      from (
        select known.at, each.after
        from (select distinct on (name) name, after from unnest(p_jobs) as job where priority = v_level.priority order by name, nth desc) as each
        cross join lateral (select ctid as at from millpond.groups where queue = p_limits.queue and groups.name = each.name offset 0) as known
      ) as job
      where g.ctid = job.at;
    end loop;
  end if;
  if v_virtual = p_limits.virtual then return; end if;
  -- Nobody waits here with groups locked: whoever has this row may want one of them. The next claim raises it, if not this one.
  -- The marks follow where no other claim is about to make tickets that begin at the virtual times that it has read. Other tickets follow one of their group
  -- that is seen here until they are, and is no greater.
  v_alone := pg_try_advisory_xact_lock(hashtext('millpond turn'), p_limits.queue);
  update millpond.limits
  set virtual = array(select greatest(old, new) from unnest(virtual, v_virtual) with ordinality as level(old, new, nth) order by nth),
    marks = case when v_alone then array(
      select least(greatest(virtual[nth], v_virtual[nth]), (
        select turn from millpond.tickets where queue = p_limits.queue and priority = (nth - 1)::smallint and turn >= mark order by turn, head limit 1))
      from unnest(marks) with ordinality as level(mark, nth) order by nth) else marks end
  where ctid = any (array(
    select ctid from millpond.limits where queue = p_limits.queue for update skip locked));
end $$;
