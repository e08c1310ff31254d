-- release: a claim is given back unstarted, or its job is parked.
-- In:  queue, id, fence; now and pause (ms) for the statements of limits.
-- Out: changes = 1: ok. changes = 0: stale.
-- Invariant: the attempt does not count, and the job keeps its place; the fence stays raised.

-- Where a pause is given, or the queue has limits, these run first: `pause` and `pause_group` with a pause, else the other two.

-- @statement give_back
-- To the queue's rate: what time has not given back already.
update millpond_queues set "full" = min("full", :now * 1000 + max(rate_burst, full_cost) * rate_step)
  - min(given.cost * rate_step, max(0, given.started_at * 1000 + given.cost * rate_step - :now * 1000))
from (
  select cost, started_at from millpond_jobs where id = :id and fence = :fence and state = 'running' and queue = :queue
) as given
where name = :queue and rate is not null

-- @statement give_back_group
update millpond_groups set "full" = given.counted - given.back
from (
  select head.id as line, min(head."full", cast(:now as integer) * 1000 + full_span) as counted,
    min(job.cost * step, max(0, started_at * 1000 + job.cost * step - :now * 1000)) as back
  from millpond_jobs as job cross join millpond_heads as head on head.id = job.line
  where job.id = :id and fence = :fence and state = 'running' and job.queue = :queue and step is not null
) as given
where id = given.line

-- @statement pause
-- A longer pause stays.
update millpond_queues set
  pause_length = case when :pause > min(paused_until - :now, pause_length) then :pause else pause_length end,
  paused_until = :now + max(min(paused_until - :now, pause_length), :pause)
where name = :queue and exists (
  select 1 from millpond_jobs
  where id = :id and fence = :fence and state = 'running' and queue = :queue and (line is null or "group" is null)
)

-- @statement pause_group
update millpond_groups set
  pause_length = case when :pause > min(paused_until - :now, pause_length) then :pause else pause_length end,
  paused_until = :now + max(min(paused_until - :now, pause_length), :pause)
where id = (
  select line from millpond_jobs
  where id = :id and fence = :fence and state = 'running' and queue = :queue and "group" is not null
)

-- @statement release
update millpond_jobs set state = 'waiting', attempt = attempt - 1, worker = null, started_at = null
where id = :id and fence = :fence and state = 'running' and queue = :queue

-- @statement park
-- In: job: its place, as journal/held tells it; state: blocked, scheduled or waiting; due_at; reason.
update millpond_jobs set
  state = :state, attempt = attempt - 1, worker = null, started_at = null, due_at = :due_at, parked = :reason,
  line = case when :state = 'waiting' then line end
where seq = :job
