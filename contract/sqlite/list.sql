-- list: one queue's jobs in one state, a page at a time.
-- In:  queue, limit; final ones also state; key and seq of the last job of the page before. key: its priority, due_at, lease_until or finished_at, by
--      which the state is ordered. Of a first page, key and seq are before all jobs: 10 or -9007199254740991, of final ones 9007199254740991, and -1.
-- Out: every column of the rows: waiting ones by priority and place, scheduled ones soonest first, running ones by
--      lease, final ones newest first.
--      The cursor of a row is STATE.KEY.SEQ.
-- Invariant: each page costs the same, however deep: every order is that of an index. No page needs the job before it to be still there.

-- @statement waiting
-- The rest of the cursor's own priority, then the lower ones: two ranges of the index, where an `or` would be a scan. Of a grouped queue: limits/waiting.
select * from (
  select * from millpond_jobs indexed by millpond_waiting
  where queue = :queue and state = 'waiting' and line is null and priority = :key and seq > :seq
  order by seq limit :limit
)
union all
select * from (
  select * from millpond_jobs indexed by millpond_waiting
  where queue = :queue and state = 'waiting' and line is null and priority < :key
  order by priority desc, seq limit :limit
)
limit :limit

-- @statement scheduled
select * from millpond_jobs indexed by millpond_scheduled
where queue = :queue and state = 'scheduled' and (due_at, seq) > (:key, :seq)
order by due_at, seq limit :limit

-- @statement running
select * from millpond_jobs indexed by millpond_running
where queue = :queue and state = 'running' and (lease_until, seq) > (:key, :seq)
order by lease_until, seq limit :limit

-- @statement final
select * from millpond_jobs indexed by millpond_finished
where queue = :queue and state = :state and finished_at is not null and (finished_at, seq) < (:key, :seq)
order by finished_at desc, seq desc limit :limit
