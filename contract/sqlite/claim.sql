-- claim: gives waiting jobs to a worker.
-- In:  queue, worker, limit, min_priority, per_group, now, lease_until, floor: claims that a power cut has undone had
--      no fence above it; see fences.sql.
-- Out: `pick` chooses the jobs, in the connection's own table millpond_picks; `look` tells of them, `claim` takes them.
-- Invariant: the fence grows at every claim, by one or to above the floor; a job is in one claim at a time. Not run if the queue is paused.
--            A claim that picks nothing writes nothing but the picks.

-- @statement picks
-- Once on each connection that claims. `start` counts them in the order of their starts. The columns after `cost` are
-- those of a grouped queue: `turn`, the virtual time of the start's turn; and what the start makes of its group:
-- `after`, its virtual time, `running` and `full`.
create temp table if not exists millpond_picks (
  start    integer primary key,
  seq      integer not null,
  priority integer not null,
  cost     integer not null,
  group_id integer,
  turn     real,
  after    real,
  running  integer,
  "full"   integer
) strict

-- @statement beyond
-- Whether the queue's rate or pause lies further ahead than it counts: the rate was raised, or the clock was set back.
-- If so, `bound` stores what it counts as.
select 1 as found from millpond_limits
where name = :queue and (paused_until > :now + pause_length or "full" > :now * 1000 + full_span)

-- @statement bound
update millpond_queues set
  "full"       = min("full", ifnull(:now * 1000 + max(rate_burst, full_cost) * rate_step, "full")),
  paused_until = min(paused_until, :now + pause_length)
where name = :queue

-- @statement pick
-- Of a grouped queue: limits/pick.
insert into millpond_picks (seq, priority, cost)
select seq, priority, cost from millpond_jobs indexed by millpond_waiting
where queue = :queue and state = 'waiting' and line is null and priority >= :min_priority
order by priority desc, seq
limit :limit

-- @statement refused
-- The first pick that the limits of the queue as a whole do not allow, and from when they do; start_at is null: when a
-- job has ended. start is null: all may start. (The bare column is that of the row with min(start).)
select min(start) as start, start_at
from (
  select start, case when most is null or running + start <= most then max(paused_until, ifnull((
      iif(start = 1, "full", max("full", cast(:now as integer) * 1000) + before * rate_step)
      - (max(rate_burst, cost) - cost) * rate_step + 999
    ) / 1000, 0)) end as start_at
  from (
    select start, cost, sum(cost) over (order by start) - cost as before from millpond_picks
  ) cross join (
    select most, running, paused_until, "full", rate_step, rate_burst from millpond_limits where name = :queue
  )
)
where start_at is null or start_at > :now

-- @statement drop
-- That pick, `start`, and those after it.
delete from millpond_picks where start >= :start

-- @statement spend
-- What the starts take of the queue's rate.
update millpond_queues set
  "full"    = max("full", cast(:now as integer) * 1000) + rate_step * (select sum(cost) from millpond_picks),
  full_cost = (select cost from millpond_picks order by start desc limit 1)
where name = :queue and rate is not null and exists (select 1 from millpond_picks)

-- @statement look
-- A row for each behind the start `from`, in the order of claiming, `count` at most: the data of all picks may be more
-- than a process can hold. A client looks at a few first, then at more, until it has 16 MiB of data or all, and drops
-- the rest of the picks. Its retry_after is 0 then. Fence and attempt are those of the claim. `job`: as JSON, which
-- crosses to another thread at once.
-- The last one of these is how many entries its journal has, null: it has none. `data`: the body, by itself, as large texts are slow in
-- JSON, and bytes cannot be in it.
select
  json_array(
    id, max(fence, :floor) + 1, attempt + 1, attempts, pick.priority, "group", key, timeout, trace, pushed_at, due_at, encoding,
    case when journal = 1 then (select nullif(entries, 0) from millpond_journals as own where own.job = pick.seq) end
  ) as job,
  data
from millpond_picks as pick cross join millpond_jobs as job on job.seq = pick.seq
where start > :from
order by start
limit :count

-- @statement claim
update millpond_jobs set
  state = 'running', fence = max(fence, :floor) + 1, attempt = attempt + 1,
  worker = :worker, started_at = :now, lease_until = :lease_until, parked = null
where seq in (select seq from millpond_picks)

-- @statement clear
delete from millpond_picks

-- @statement retry
-- When another claim may find more: when the next scheduled job is due; and with grouped = 1, when the first group that
-- is held may start a job, or now, if there are jobs that do not stand in lines yet. null: no such time is known.
select min(at) as at from (
  select min(due_at) as at from millpond_jobs indexed by millpond_scheduled
  where queue = :queue and state = 'scheduled' and due_at < 281474976710655
  union all
  select min(held_until) from millpond_groups indexed by millpond_held where :grouped = 1 and queue = :queue and held_until is not null
  union all
  select :now where :grouped = 1 and exists (
    select 1 from millpond_jobs indexed by millpond_waiting where queue = :queue and state = 'waiting' and line is null
  )
)
