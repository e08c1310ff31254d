-- release: a claim is given back unstarted.
-- In:  queue, id, fence.
-- Out: changes = 1: ok. changes = 0: stale.
-- Invariant: the attempt does not count, and the job keeps its place; the fence stays raised.

-- @statement release
update millpond_jobs set state = 'waiting', attempt = attempt - 1, worker = null, started_at = null
where id = :id and fence = :fence and state = 'running' and queue = :queue
