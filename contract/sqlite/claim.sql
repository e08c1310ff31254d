-- claim: gives waiting jobs to a worker.
-- In:  queue, worker, limit, now, lease_until, floor: claims that a power cut has undone had no fence above it; see `fences` in millpond_meta.
-- Out: per job a JSON list of what a claim tells, and its data; in no particular order: sort by priority descending, then seq.
-- Invariant: the fence grows at every claim, by one or to above the floor; a job is in one claim at a time. Not run if the queue is paused.

-- @statement claim
update millpond_jobs set
  state = 'running', fence = max(fence, :floor) + 1, attempt = attempt + 1,
  worker = :worker, started_at = :now, lease_until = :lease_until
where seq in (
  select seq from millpond_jobs indexed by millpond_waiting
  where queue = :queue and state = 'waiting'
  order by priority desc, seq
  limit :limit
)
returning
  json_array(priority, seq, id, fence, attempt, attempts, "group", key, timeout, trace, pushed_at, due_at, encoding) as job,
  data

-- @statement next_due
-- When the queue's next scheduled job is due, for `retryAfter`.
select min(due_at) as due_at from millpond_jobs indexed by millpond_scheduled where queue = :queue and state = 'scheduled'

-- @statement probe
-- Whether a claim would find anything: an idle worker's empty claim must not take the write lock.
select 1 as found from millpond_queues
where name = :queue and paused = 0 and exists (
  select 1 from millpond_jobs indexed by millpond_waiting where queue = :queue and state = 'waiting'
)
