-- complete: a claim's job is done.
-- In:  queue, id, fence, now, result with its encoding (both null: no result).
-- Out: changes = 1: ok. changes = 0: stale.
-- Some drivers bind bytes of length 0 as null, hence the coalesce.
-- Invariant: only the claim whose fence is the job's can complete it. `remove` where the queue's keep_done is 0.

-- @statement keep
update millpond_jobs set
  state = 'done', line = null, finished_at = :now, result_encoding = :encoding,
  result = case when :encoding is not null then coalesce(:result, x'') end
where id = :id and fence = :fence and state = 'running' and queue = :queue

-- @statement remove
delete from millpond_jobs
where id = :id and fence = :fence and state = 'running' and queue = :queue
