-- sweep: what time alone brings about.
-- In:  queue, now, limit.
-- Out: `look`: per queue the earliest of each kind, so that only queues with something to do are written to;
--      changes of `promote` and `expire`: how many; rows of `lost`.
-- Invariant: each touches at most `limit` jobs. Any number of processes may sweep at once.

-- @statement look
select name, keep_done, keep_dead,
  (select min(due_at)      from millpond_jobs indexed by millpond_scheduled where queue = name and state = 'scheduled') as due_at,
  (select min(lease_until) from millpond_jobs indexed by millpond_running   where queue = name and state = 'running') as lease_until,
  (select min(finished_at) from millpond_jobs indexed by millpond_finished  where queue = name and state = 'done'      and finished_at is not null) as done_at,
  (select min(finished_at) from millpond_jobs indexed by millpond_finished  where queue = name and state = 'dead'      and finished_at is not null) as dead_at,
  (select min(finished_at) from millpond_jobs indexed by millpond_finished  where queue = name and state = 'cancelled' and finished_at is not null) as cancelled_at
from millpond_queues

-- @statement promote
update millpond_jobs set state = 'waiting'
where seq in (
  select seq from millpond_jobs indexed by millpond_scheduled
  where queue = :queue and state = 'scheduled' and due_at <= :now
  order by due_at, seq
  limit :limit
)

-- @statement lost
update millpond_jobs set
  state       = case when attempt >= attempts then 'dead' else 'waiting' end,
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
-- state: done, dead or cancelled; until: now less the time that the queue keeps them.
delete from millpond_jobs
where seq in (
  select seq from millpond_jobs indexed by millpond_finished
  where queue = :queue and state = :state and finished_at <= :until
  order by finished_at, seq
  limit :limit
)

-- @statement remove
-- A dead job of a queue whose keep_dead is 0.
delete from millpond_jobs where id = :id

-- @statement oldest_minute
select min(minute) as minute from millpond_histograms

-- @statement forget_minutes
delete from millpond_histograms where minute < :minute
