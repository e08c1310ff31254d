-- limits: claims of a grouped queue, whose groups take turns. The limits of a queue as a whole are in claim.sql and release.sql.
-- In:  as claim.sql.
-- Out: `pick` chooses the jobs of a claim, in the connection's own table millpond_picks; see claim.sql.
-- Invariant: the order of contract/operations.md, "Limits and turns". Groups that are blocked cost nothing: a claim
--            looks at groups that were touched or are held no longer, and at no more tickets than it may start jobs.
-- Virtual times stay inside SQLite: as text they would lose their last bits.

-- @statement count
-- When a queue becomes grouped: this trigger and the next two, which a file without groups does without.
-- A slot is a running job. The claim counts those that it takes (`start`). All others are counted by the statement that
-- moves the job, whoever runs it. A group that has a ticket or is held needs no touch when a job of it ends: what it
-- starts next, and when, stays the same.
create trigger if not exists millpond_line_joined after update of state, line on millpond_jobs
when new.line is not null and (new.state = 'waiting' or old.line is null) begin
  update millpond_groups set
    running = running + (new.state = 'running') - (old.state = 'running' and old.line is not null),
    touched = 1
  where id = new.line;
end

-- @statement count_left
create trigger if not exists millpond_line_left after update of state on millpond_jobs
when old.line is not null and old.state in ('waiting', 'running') and new.state not in ('waiting', 'running') begin
  update millpond_groups set
    running = running - (old.state = 'running'),
    touched = touched or old.state = 'waiting' or ticket < 0 and held_until is null
  where id = old.line;
end

-- @statement count_removed
create trigger if not exists millpond_line_removed after delete on millpond_jobs
when old.line is not null and old.state in ('waiting', 'running') begin
  update millpond_groups set
    running = running - (old.state = 'running'),
    touched = touched or old.state = 'waiting' or ticket < 0 and held_until is null
  where id = old.line;
end

-- @statement line_up_groups
-- Waiting jobs that are in no line yet, as they waited before their queue was grouped, or wait again: the groups of up to 1,000 of them,
insert into millpond_groups (queue, name)
select :queue, ifnull("group", '') from (
  select "group" from millpond_jobs indexed by millpond_waiting
  where queue = :queue and state = 'waiting' and line is null
  order by priority desc, seq
  limit 1000
) where true
on conflict do nothing

-- @statement line_up
-- and the jobs themselves. changes: how many.
update millpond_jobs set line = (select id from millpond_groups where queue = :queue and name = ifnull("group", ''))
where seq in (
  select seq from millpond_jobs indexed by millpond_waiting
  where queue = :queue and state = 'waiting' and line is null
  order by priority desc, seq
  limit 1000
)

-- @statement adopt_groups
-- The same of jobs that ran before their queue was grouped.
insert into millpond_groups (queue, name)
select :queue, ifnull("group", '') from millpond_jobs indexed by millpond_running
where queue = :queue and state = 'running' and line is null
on conflict do nothing

-- @statement adopt
update millpond_jobs set line = (select id from millpond_groups where queue = :queue and name = ifnull("group", ''))
where seq in (
  select seq from millpond_jobs indexed by millpond_running where queue = :queue and state = 'running' and line is null
)

-- @statement place
-- Which groups are eligible, of those that were touched or are held no longer. A ticket that is new at its priority
-- begins at the queue's virtual time: to wait or to idle earns no credit.
-- A rate and a pause that lie further ahead than they count are stored as they count: they would stay as far ahead at each look.
update millpond_groups set
  touched    = 0,
  "full"     = case when head.place is null then head."full" else full_at end,
  paused_until = case when head.place is null then head.paused_until else pause_at end,
  held_until = case when head.start_at > :now then head.start_at end,
  ticket     = case when head.start_at <= :now then head.priority else -1 end,
  turn       = case when head.priority = head.ticket then head.turn else max(
    ifnull((select virtual from millpond_turns where group_id = head.id and priority = head.priority), 0),
    ifnull((select virtual from millpond_virtual where queue = :queue and priority = head.priority), 0)
  ) end,
  place      = ifnull(head.place, 0),
  cost       = ifnull(head.cost, 1),
  -- 10 s after it was found idle: by then what its virtual time is ahead matters little.
  forget_at  = case when head.place is null and head.running = 0 and head.limits is null
    then max(:now + 10000, (head."full" + 999) / 1000, head.paused_until) end
from (
  select *, case when is_free then max(pause_at, ifnull((full_at - credit + 999) / 1000, 0)) end as start_at
  from (
    select head.*,
      min(head."full", ifnull(cast(:now as integer) * 1000 + full_span, head."full")) as full_at,
      min(head.paused_until, :now + pause_length) as pause_at
    from (
      select id from millpond_groups indexed by millpond_touched where queue = :queue and touched = 1
      union
      select id from millpond_groups indexed by millpond_held where queue = :queue and held_until <= :now
    ) as changed cross join millpond_heads as head on head.id = changed.id
  )
) as head
where millpond_groups.id = head.id

-- @statement pick
-- One start after the other: that of the first ticket, after which its group comes again with its next job, if it is
-- still eligible. The next of up to `per_group` jobs of a turn comes at once (`goes_on`); `at` is the group's virtual
-- time by then (null: `turn`), `turn` that of the turn's beginning.
insert into millpond_picks (seq, group_id, priority, turn, cost, after, running, "full")
with recursive pick (priority, goes_on, turn, place, at, more, group_id, cost, weight, running, most, "full", step, burst) as (
  select * from (
    select
      g.ticket, 0, g.turn, g.place, null, :per_group - 1, g.id, g.cost, g.weight, g.running,
      ifnull(g.most, case when g.name <> '' then q.group_most end),
      -- Of a group that has a ticket it lies no further ahead than it counts.
      g."full",
      case when g.rate_step is not null then g.rate_step when g.name <> '' then q.group_step end,
      case when g.rate_step is not null then g.rate_burst when g.name <> '' then q.group_burst end
    from millpond_queues as q cross join millpond_groups as g indexed by millpond_tickets
    where q.name = :queue and g.queue = :queue and g.ticket >= :min_priority and g.ticket >= 0
    order by g.ticket desc, g.turn, g.place
    limit :limit
  )
  union all
  select
    next.priority,
    next.priority = pick.priority and pick.more > 0,
    case when next.priority <> pick.priority then max(
        ifnull((select virtual from millpond_turns where group_id = pick.group_id and priority = next.priority), 0),
        ifnull((select virtual from millpond_virtual where queue = :queue and priority = next.priority), 0)
      )
      when pick.more > 0 then pick.turn
      else ifnull(pick.at, pick.turn) + pick.cost / pick.weight
    end,
    next.seq,
    case when next.priority = pick.priority and pick.more > 0 then ifnull(pick.at, pick.turn) + pick.cost / pick.weight end,
    case when next.priority = pick.priority and pick.more > 0 then pick.more else :per_group end - 1,
    pick.group_id, next.cost, pick.weight, pick.running + 1, pick.most,
    max(pick."full", :now * 1000) + pick.cost * pick.step, pick.step, pick.burst
  from pick cross join millpond_jobs as next on next.seq = coalesce(
    (
      select seq from millpond_jobs indexed by millpond_waiting
      where queue = :queue and line = pick.group_id and state = 'waiting' and priority = pick.priority and seq > pick.place
      order by seq
      limit 1
    ),
    (
      select seq from millpond_jobs indexed by millpond_waiting
      where queue = :queue and line = pick.group_id and state = 'waiting' and priority < pick.priority
      order by priority desc, seq
      limit 1
    )
  )
  where (pick.most is null or pick.running + 1 < pick.most)
    and next.priority >= :min_priority
    and (pick.step is null
      or max(pick."full", :now * 1000) + (pick.cost - max(pick.burst, next.cost) + next.cost) * pick.step <= :now * 1000)
  order by 1 desc, 2 desc, 3, 4
  limit :limit
)
select
  place, group_id, priority, turn, cost, ifnull(at, turn) + cost / weight, running + 1, max("full", :now * 1000) + cost * step
from pick

-- @statement turns
-- What the starts take: the virtual times of the groups,
insert into millpond_turns (group_id, priority, virtual)
select group_id, priority, max(after) from millpond_picks where true group by group_id, priority
on conflict do update set virtual = excluded.virtual

-- @statement virtual
-- those of the queue,
insert into millpond_virtual (queue, priority, virtual)
select :queue, priority, max(turn) from millpond_picks where true group by priority
on conflict do update set virtual = max(virtual, excluded.virtual)

-- @statement start
-- and the rows of the groups. Run `place` after it. (The picks of a group: the bare columns are those of the row with max(start).)
update millpond_groups set
  touched   = 1,
  running   = started.running,
  "full"    = ifnull(started."full", millpond_groups."full"),
  full_cost = started.cost,
  ticket    = started.priority,
  turn      = started.after
from (
  select group_id, max(start), priority, cost, after, running, "full" from millpond_picks group by group_id
) as started
where millpond_groups.id = started.group_id

-- @statement claimed
-- When a claim last looked at groups. One that comes more than 1 s before that shows that the clock was set back: run
-- `touch` before the probe.
update millpond_queues set claimed_at = :now where name = :queue

-- @statement probe
-- Whether a claim would find anything, or has to look at groups.
select 1 as found
where exists (select 1 from millpond_groups indexed by millpond_touched where queue = :queue and touched = 1)
   or exists (select 1 from millpond_groups indexed by millpond_tickets where queue = :queue and ticket >= :min_priority and ticket >= 0)
   or exists (select 1 from millpond_groups indexed by millpond_held where queue = :queue and held_until <= :now)
   or exists (select 1 from millpond_jobs indexed by millpond_waiting where queue = :queue and state = 'waiting' and line is null)

-- @statement touch
-- The limits of all groups have changed, or the clock was set back. Groups that have neither waiting nor running jobs are left alone.
update millpond_groups set touched = 1 where queue = :queue and (ticket >= 0 or held_until is not null or running > 0)

-- @statement forget
-- Groups that have been idle for long enough. changes: how many.
delete from millpond_groups
where id in (
  select id from millpond_groups indexed by millpond_idle
  where queue = :queue and touched = 0 and forget_at <= :now
  order by forget_at
  limit :limit
)
