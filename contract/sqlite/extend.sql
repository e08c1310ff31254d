-- extend: a worker is still at its job.
-- In:  queue, id, fence, lease_until, progress with its encoding (both null: nothing new).
-- Out: changes = 1: ok. changes = 0: `cancelled` tells whether the claim was cancelled, else it is stale.
-- Some drivers bind bytes of length 0 as null, hence the coalesce.
-- Invariant: a lease is never shortened.

-- @statement extend
update millpond_jobs set
  lease_until       = max(lease_until, :lease_until),
  progress_encoding = coalesce(:encoding, progress_encoding),
  progress          = case when :encoding is null then progress else coalesce(:progress, x'') end
where id = :id and fence = :fence and state = 'running' and queue = :queue

-- @statement cancelled
select 1 as found from millpond_jobs
where id = :id and fence = :fence and state = 'cancelled' and queue = :queue
