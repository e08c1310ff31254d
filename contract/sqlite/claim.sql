-- claim: gives waiting jobs to a worker.
-- In:  queue, worker, limit, min_priority, now, lease_until, floor: claims that a power cut has undone had no fence above it; see `fences` in millpond_meta.
-- Out: `look` tells which jobs `claim` takes when it is run next in the same transaction, and `data` their data. changes of `claim`: how many.
-- Invariant: the fence grows at every claim, by one or to above the floor; a job is in one claim at a time. Not run if the queue is paused. Of a grouped queue: limits.sql.

-- @statement look
-- One row: `jobs`, a JSON list in the order of claiming. Of each job a list: id, fence, attempt, attempts, priority, group, key, timeout,
-- trace, pushed_at, due_at, encoding. Fence and attempt are those of the claim.
select json_group_array(json_array(
  id, fence, attempt, attempts, priority, "group", key, timeout, trace, pushed_at, due_at, encoding
)) as jobs
from (
  select
    id, max(fence, :floor) + 1 as fence, attempt + 1 as attempt, attempts, priority, "group", key, timeout, trace, pushed_at, due_at, encoding
  from millpond_jobs indexed by millpond_waiting
  where queue = :queue and state = 'waiting' and line is null and priority >= :min_priority
  order by priority desc, seq
  limit :limit
)

-- @statement data
-- In the same order. By themselves, as large texts are slow in a JSON list, and bytes cannot be in one.
select data from millpond_jobs indexed by millpond_waiting
where queue = :queue and state = 'waiting' and line is null and priority >= :min_priority
order by priority desc, seq
limit :limit

-- @statement claim
update millpond_jobs set
  state = 'running', fence = max(fence, :floor) + 1, attempt = attempt + 1,
  worker = :worker, started_at = :now, lease_until = :lease_until
where seq in (
  select seq from millpond_jobs indexed by millpond_waiting
  where queue = :queue and state = 'waiting' and line is null and priority >= :min_priority
  order by priority desc, seq
  limit :limit
)

-- @statement costs
-- Of the jobs that `look` would tell of, in the same order.
select cost from millpond_jobs indexed by millpond_waiting
where queue = :queue and state = 'waiting' and line is null and priority >= :min_priority
order by priority desc, seq
limit :limit

-- @statement spend
-- The queue's rate after the claim's starts.
update millpond_queues set "full" = :full where name = :queue

-- @statement next_due
-- When the queue's next scheduled job is due, for `retryAfter`.
select min(due_at) as due_at from millpond_jobs indexed by millpond_scheduled where queue = :queue and state = 'scheduled'

-- @statement probe
-- Whether a claim in a queue that is not grouped would find anything: an idle worker's empty claim must not take the write lock.
select 1 as found from millpond_queues
where name = :queue and paused = 0 and grouped = 0 and (most is null or running < most) and exists (
  select 1 from millpond_jobs indexed by millpond_waiting where queue = :queue and state = 'waiting' and line is null and priority >= :min_priority
)
