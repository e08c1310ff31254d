-- fail: a claim's attempt failed.
-- In:  queue, id, fence, now, error (JSON), delay (ms until the next attempt; null: none). For `backoff` the queue's base, factor, max and jitter, and
--      random, from 0 to below 1.
-- Out: the new state; no row: stale.
-- Invariant: dead when there is no delay or no attempt left. `remove` the dead one where the queue's keep_dead is 0.

-- @statement fail
update millpond_jobs set
  state       = case when :delay is null or attempt >= attempts then 'dead' when :delay <= 0 then 'waiting' else 'scheduled' end,
  due_at      = case when :delay is null or attempt >= attempts then due_at else :now + :delay end,
  finished_at = case when :delay is null or attempt >= attempts then :now end,
  error       = :error
where id = :id and fence = :fence and state = 'running' and queue = :queue
returning state

-- @statement backoff
-- The delay of an attempt that failed, by the queue's policy; no row: stale. Run before `fail`.
select cast(
  case when :base = 0 then 0 else min(:max, :base * pow(:factor, attempt - 1)) * (1 - :jitter * :random) end as integer
) as delay
from millpond_jobs where id = :id and fence = :fence and state = 'running' and queue = :queue

-- @statement remove
delete from millpond_jobs where id = :id
