-- list: one queue's jobs in one state, a page at a time.
-- In:  queue, limit; final ones also state; key and seq of the cursor. key: its priority, due_at, lease_until or
--      finished_at, by which the state is ordered; of a blocked one its seq. Of a first page, key and seq are before all
--      jobs: 10 or -9007199254740991, of final ones 9007199254740991, and -1.
-- Out: key and seq of the rows: blocked ones by place, waiting ones by priority and place, scheduled ones soonest first,
--      running ones by lease, final ones newest first. `matching`, which of them a filter lets through; `job`, every
--      column of a row. The cursor of a row is STATE.KEY.SEQ.
-- Invariant: each page costs the same, however deep: every order is that of an index. No page needs the job before it to be still there.

-- @statement blocked
select seq as key, seq from millpond_jobs indexed by millpond_blocked
where queue = :queue and state = 'blocked' and seq > :seq
order by seq limit :limit

-- @statement waiting
-- The rest of the cursor's own priority, then the lower ones: two ranges of the index, where an `or` would be a scan.
-- Of a grouped queue: `lines`.
select * from (
  select priority as key, seq from millpond_jobs indexed by millpond_waiting
  where queue = :queue and state = 'waiting' and line is null and priority = :key and seq > :seq
  order by seq limit :limit
)
union all
select * from (
  select priority as key, seq from millpond_jobs indexed by millpond_waiting
  where queue = :queue and state = 'waiting' and line is null and priority < :key
  order by priority desc, seq limit :limit
)
limit :limit

-- @statement lines
-- Lines have no common order, so a page looks at all jobs that wait.
select priority as key, seq from millpond_jobs indexed by millpond_waiting
where queue = :queue and state = 'waiting' and (priority < :key or priority = :key and seq > :seq)
order by priority desc, seq
limit :limit

-- @statement scheduled
select due_at as key, seq from millpond_jobs indexed by millpond_scheduled
where queue = :queue and state = 'scheduled' and (due_at, seq) > (:key, :seq)
order by due_at, seq limit :limit

-- @statement running
select lease_until as key, seq from millpond_jobs indexed by millpond_running
where queue = :queue and state = 'running' and (lease_until, seq) > (:key, :seq)
order by lease_until, seq limit :limit

-- @statement final
select finished_at as key, seq from millpond_jobs indexed by millpond_finished
where queue = :queue and state = :state and finished_at is not null and (finished_at, seq) < (:key, :seq)
order by finished_at desc, seq desc limit :limit

-- @statement matching
-- Of `seqs`, a JSON list; rows come in any order. What is null asks for nothing. bytes: how much data was looked at for `text`.
select seq,
  ifnull(
    (:group is null or ifnull("group", '') = :group)
    and (:key is null or jobs.key = :key)
    and (:error_code is null or iif(json_valid(error), error ->> 'code', '') = :error_code)
    and (:error_text is null or iif(json_valid(error), instr(error ->> 'message', :error_text), 0) > 0)
    and (:pushed_from is null or pushed_at >= :pushed_from)
    and (:pushed_before is null or pushed_at < :pushed_before)
    and (:text is null or encoding = 'json' and instr(data, :text) > 0),
    0
  ) as matches,
  iif(:text is null, 0, length(data)) as bytes
from json_each(:seqs) as looked cross join millpond_jobs as jobs on jobs.seq = looked.value

-- @statement job
select * from millpond_jobs where seq = :seq
