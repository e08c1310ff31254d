-- list: one queue's jobs in one state, a page at a time.
-- In:  queue, limit; final ones also state; where the page follows another, the last job of that as `cursor` gives it.
-- Out: every column of the rows: waiting ones by priority and place, scheduled ones soonest first, running ones by
--      lease, final ones newest first.
-- Invariant: each page costs the same, however deep: every order is that of an index.

-- @statement cursor
-- Of the job `after`; null: of a first page, before all others. No row: the job has gone, or moved on to another state, and there is no place to
-- go on from. The page is then empty.
select seq, priority, due_at, lease_until, finished_at
from millpond_jobs where id = :after and queue = :queue and state = :state
union all
select -1, 10, -9007199254740991, -9007199254740991, 9007199254740991 where :after is null

-- @statement waiting
-- The rest of the cursor's own priority, then the lower ones: two ranges of the index, where an `or` would be a scan. Of a grouped queue: limits/waiting.
select * from (
  select * from millpond_jobs indexed by millpond_waiting
  where queue = :queue and state = 'waiting' and line is null and priority = :priority and seq > :seq
  order by seq limit :limit
)
union all
select * from (
  select * from millpond_jobs indexed by millpond_waiting
  where queue = :queue and state = 'waiting' and line is null and priority < :priority
  order by priority desc, seq limit :limit
)
limit :limit

-- @statement scheduled
select * from millpond_jobs indexed by millpond_scheduled
where queue = :queue and state = 'scheduled' and (due_at, seq) > (:due_at, :seq)
order by due_at, seq limit :limit

-- @statement running
select * from millpond_jobs indexed by millpond_running
where queue = :queue and state = 'running' and (lease_until, seq) > (:lease_until, :seq)
order by lease_until, seq limit :limit

-- @statement final
select * from millpond_jobs indexed by millpond_finished
where queue = :queue and state = :state and finished_at is not null and (finished_at, seq) < (:finished_at, :seq)
order by finished_at desc, seq desc limit :limit
