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

-- @statement keep_list
-- In:  held, many claims that end without a result, as JSON: an object with each id's fence.
-- Out: changes = how many were ok. If fewer than there are: undo, and complete each by itself to learn which are stale.
-- Run inside a savepoint. An object, as SQLite hands out its names and numbers as they are, where it would read each pair of a list
-- anew. The cross join makes SQLite look each id up, instead of trying each running job against the list.
update millpond_jobs set state = 'done', line = null, finished_at = :now, result_encoding = null, result = null
where seq in (
  select job.seq from json_each(:held) as held cross join millpond_jobs as job
  where job.id = held.key and job.fence = held.value and job.state = 'running' and job.queue = :queue
)

-- @statement remove_list
delete from millpond_jobs
where seq in (
  select job.seq from json_each(:held) as held cross join millpond_jobs as job
  where job.id = held.key and job.fence = held.value and job.state = 'running' and job.queue = :queue
)
