-- fail: a claim's attempt failed.
-- In:  queue, id, fence, now, error (JSON), delay (ms until the next attempt; null: none). For `backoff` the caller computes it by the
--      queue's policy (vectors/backoff.json) from what `attempt` tells: not every build of SQLite has pow().
-- Out: the new state; no row: stale.
-- Invariant: dead when there is no delay or no attempt left. `remove` the dead one where the queue's keep_dead is 0.

-- @statement fail
update millpond_jobs set
  state       = case when :delay is null or attempt >= attempts then 'dead' when :delay <= 0 then 'waiting' else 'scheduled' end,
  line        = case when :delay <= 0 and attempt < attempts then line end,
  due_at      = case when :delay is null or attempt >= attempts then due_at else :now + :delay end,
  finished_at = case when :delay is null or attempt >= attempts then :now end,
  error       = :error
where id = :id and fence = :fence and state = 'running' and queue = :queue
returning state

-- @statement attempt
-- Which attempt failed, and the queue's policy, for the delay `backoff`; no row: stale. Run before `fail`.
select attempt, backoff_base, backoff_factor, backoff_max, backoff_jitter
from millpond_jobs join millpond_queues on name = queue
where id = :id and fence = :fence and state = 'running' and queue = :queue

-- @statement remove
delete from millpond_jobs where id = :id
