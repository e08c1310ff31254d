-- claim: gives waiting jobs to a worker.
-- In:  queue, worker, limit, now, lease_until.
-- Out: the jobs, in no particular order: sort by priority descending, then seq.
-- Invariant: the fence grows by one at every claim; a job is in one claim at a time. Not run if the queue is paused.

-- @statement claim
update millpond_jobs set
  state = 'running', fence = fence + 1, attempt = attempt + 1,
  worker = :worker, started_at = :now, lease_until = :lease_until
where seq in (
  select seq from millpond_jobs indexed by millpond_ready
  where queue = :queue and state = 'waiting'
  order by priority desc, seq
  limit :limit
)
returning priority, seq, id, fence, attempt, attempts, "group", key, timeout, trace, pushed_at, due_at, encoding, data

-- @statement probe
-- Whether a claim would find anything: an idle worker's empty claim must not take the write lock.
select 1 as found from millpond_queues
where name = :queue and paused = 0
  and exists (select 1 from millpond_jobs indexed by millpond_ready where queue = :queue and state = 'waiting')
