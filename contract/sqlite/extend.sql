-- extend: a worker is still at its job.
-- In:  queue, id, fence, lease_until; for `report` also progress with its encoding.
-- Out: changes = 1: ok. changes = 0: `cancelled` tells whether the claim was cancelled, else it is stale.
-- Some drivers bind bytes of length 0 as null, hence the coalesce.
-- Invariant: a lease is never shortened.

-- @statement extend
update millpond_jobs set lease_until = max(lease_until, :lease_until)
where id = :id and fence = :fence and state = 'running' and queue = :queue

-- @statement report
update millpond_jobs set
  lease_until = max(lease_until, :lease_until), progress_encoding = :encoding, progress = coalesce(:progress, x'')
where id = :id and fence = :fence and state = 'running' and queue = :queue

-- @statement cancelled
select 1 as found from millpond_jobs
where id = :id and fence = :fence and state = 'cancelled' and queue = :queue
