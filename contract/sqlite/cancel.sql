-- cancel: a job is not wanted any more.
-- In:  id, now.
-- Out: `look` gives the state it is in; no row: unknown. Run `cancel` if that is a live one.
-- Invariant: final states do not change. The fence stays, so the worker's next operation on it is stale.
-- `remove` instead of `cancel` where the queue's keep_dead is 0.

-- @statement look
select queue, state from millpond_jobs where id = :id

-- @statement cancel
update millpond_jobs set
  state = 'cancelled', line = null, finished_at = :now, due_at = ifnull(follow_due, due_at), follow_due = null,
  parked = null
where id = :id

-- @statement remove
delete from millpond_jobs where id = :id
