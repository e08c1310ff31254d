-- sweep: what time alone brings about.
-- In:  queue, now, limit.
-- Out: `look`: per queue what there is to do (1 or 0 each), and `busy`: whether there is any of it, so that only those
--      queues are written to; when its next scheduled job is due;
--      changes of `promote` and `expire`: how many; rows of `lost`.
-- Invariant: each touches at most `limit` jobs. Any number of processes may sweep at once.

-- @statement look
-- emptied: another program has removed jobs, so the counts are wrong: see `recount`. line_up: waiting jobs to move into
-- lines. forget: groups to forget. promote: due jobs. ahead: see `set_back`. lost: leases that ended. done, dead and
-- cancelled: jobs that were kept long enough.
-- Materialized, as SQLite would look up each time twice.
with counts as materialized (
  select queue,
    sum(iif(name = 'scheduled', count, 0)) as scheduled, sum(iif(name = 'waiting', count, 0)) as waiting,
    sum(iif(name = 'blocked', count, 0)) as blocked,
    sum(iif(name = 'running', count, 0)) as running, sum(iif(name = 'done', count, 0)) as done,
    sum(iif(name = 'dead', count, 0)) as dead, sum(iif(name = 'cancelled', count, 0)) as cancelled
  from millpond_counts where kind = 'state' group by queue
),
queue as materialized (
  select name, keep_done, keep_dead, scheduled, waiting, running, done, dead, cancelled,
    blocked > 0 and not exists (
      select 1 from millpond_jobs indexed by millpond_blocked where queue = name and state = 'blocked'
    ) as unblocked,
    waiting > 0 and (select max(seq) from millpond_jobs) is null or waiting > 0 and grouped = 0 and not exists (
      select 1 from millpond_jobs indexed by millpond_waiting where queue = name and state = 'waiting' and line is null
    ) as unfounded,
    grouped = 1 and exists (
      select 1 from millpond_jobs indexed by millpond_waiting where queue = name and state = 'waiting' and line is null
    ) as line_up,
    (
      select min(forget_at) from millpond_groups indexed by millpond_idle
      where queue = millpond_queues.name and touched = 0 and forget_at is not null
    ) as forget_at,
    (select min(due_at)      from millpond_jobs indexed by millpond_scheduled where queue = name and state = 'scheduled') as due_at,
    (select min(lease_until) from millpond_jobs indexed by millpond_running   where queue = name and state = 'running') as lease_until,
    (
      select started_at from millpond_jobs indexed by millpond_running where queue = name and state = 'running'
      order by lease_until desc limit 1
    ) as last_started,
    (
      select min(finished_at) from millpond_jobs indexed by millpond_finished
      where queue = name and state = 'done' and finished_at is not null
    ) as done_at,
    (
      select min(finished_at) from millpond_jobs indexed by millpond_finished
      where queue = name and state = 'dead' and finished_at is not null
    ) as dead_at,
    (
      select min(finished_at) from millpond_jobs indexed by millpond_finished
      where queue = name and state = 'cancelled' and finished_at is not null
    ) as cancelled_at
  from millpond_queues left join counts on counts.queue = name
),
work as (
  select name, due_at, line_up,
    ifnull(unfounded or unblocked or scheduled > 0 and due_at is null or running > 0 and lease_until is null
      or done > 0 and done_at is null or dead > 0 and dead_at is null or cancelled > 0 and cancelled_at is null, 0) as emptied,
    ifnull(forget_at <= :now, 0) as forget,
    ifnull(due_at <= :now, 0) as promote,
    ifnull(last_started > :now + 1000, 0) as ahead,
    ifnull(lease_until <= :now, 0) as lost,
    ifnull(done_at + keep_done <= :now, 0) as done,
    ifnull(dead_at + keep_dead <= :now, 0) as dead,
    ifnull(cancelled_at + keep_dead <= :now, 0) as cancelled
  from queue
)
select *, max(emptied, line_up, forget, promote, ahead, lost, done, dead, cancelled) as busy from work

-- @statement recount
-- Reads all jobs of the database, once after they were removed by another program.
update millpond_counts set count = (
  select count(*) from millpond_jobs where queue = :queue and state = millpond_counts.name and (state <> 'done' or finished_at is not null)
)
where queue = :queue and kind = 'state'

-- @statement promote
-- Run limits/line_up_groups and limits/line_up after it in a grouped queue.
update millpond_jobs set state = 'waiting'
where seq in (
  select seq from millpond_jobs indexed by millpond_scheduled
  where queue = :queue and state = 'scheduled' and due_at <= :now
  order by due_at, seq
  limit :limit
)

-- @statement set_back
-- Run before `lost`: jobs that were claimed by a clock that has been set back since. They count as claimed now.
update millpond_jobs set lease_until = lease_until - (started_at - :now), started_at = :now
where started_at > :now + 1000 and seq in (
  select seq from millpond_jobs indexed by millpond_running
  where queue = :queue and state = 'running' order by lease_until desc limit :limit
)

-- @statement lost
update millpond_jobs set
  state       = case when attempt >= attempts then 'dead' else 'waiting' end,
  line        = case when attempt < attempts then line end,
  due_at      = case when attempt >= attempts then due_at else :now end,
  finished_at = case when attempt >= attempts then :now end,
  error       = case when attempt < attempts then error else json_object(
    'code', 'LeaseLost', 'name', 'MillpondError', 'message', 'Worker ' || worker || ' fell silent.'
  ) end
where seq in (
  select seq from millpond_jobs indexed by millpond_running
  where queue = :queue and state = 'running' and lease_until <= :now
  order by lease_until, seq
  limit :limit
)
returning id, attempt, state

-- @statement expire
-- state: done, dead or cancelled.
delete from millpond_jobs
where seq in (
  select seq from millpond_jobs indexed by millpond_finished
  where queue = :queue and state = :state and finished_at <= :now - (
    select iif(:state = 'done', keep_done, keep_dead) from millpond_queues where name = :queue
  )
  order by finished_at, seq
  limit :limit
)

-- @statement remove
-- A dead job of a queue whose keep_dead is 0.
delete from millpond_jobs where id = :id

-- @statement old_minutes
-- Whether there are histograms of minutes that are kept no longer by themselves: the last 60 are.
select 1 as found from millpond_histograms where minute >= 0 and minute < cast(:now / 60000 as integer) - 59 limit 1

-- @statement add_up_minutes
-- Before `forget_minutes`: minute -1 keeps the sum of all that are forgotten.
insert into millpond_histograms (minute, queue, priority, metric, bucket, count)
select -1, queue, priority, metric, bucket, sum(count) from millpond_histograms
where minute >= 0 and minute < cast(:now / 60000 as integer) - 59
group by queue, priority, metric, bucket
on conflict do update set count = count + excluded.count

-- @statement forget_minutes
delete from millpond_histograms where minute >= 0 and minute < cast(:now / 60000 as integer) - 59
