-- once: what a key does beyond one live job: operations.md, "Once for a while".
-- In:  queue, key, now; remember: ms for which the key is remembered after the job ended, below 0: after it was pushed; null: not at all.
-- Out: met, follower, holders: jobs. due: from when it is due.
-- Invariant: only queues whose `once` is 1 have jobs with `remember` or `follow_due`, and rows in millpond_remembered. The others run
--      nothing of this. A follower has `follow_due`, from when it may start, and no time as `due_at`.

-- @statement mark
-- Before the first job with `remember` or `follow_due` is stored. Then the queue is read anew.
update millpond_queues set once = 1 where name = :queue and once = 0

-- @statement met
-- The job that has the key: a live one, with its state, before one that is remembered, without.
select id, state, pushed_at from millpond_jobs
where queue = :queue and key = :key and key is not null and follow_due is null and state in ('blocked', 'scheduled', 'waiting', 'running')
union all
select id, null, null from millpond_remembered where queue = :queue and key = :key and until > :now
limit 1

-- @statement follower
select id, pushed_at from millpond_jobs where queue = :queue and key = :key and follow_due is not null

-- @statement insert
-- As push/insert, in its place. Of a follower, follow_due is what would be its due_at, and due_at is 281474976710655.
insert into millpond_jobs
  (id, queue, state, priority, fence, attempts, pushed_at, due_at, timeout, key, "group", cost, line, trace, encoding, data,
  remember, follow_due)
values (
  :id, :queue, :state, :priority, ifnull((select value from millpond_meta where key = 'removed'), 0),
  :attempts, :now, :due_at, :timeout, :key, :group, :cost, :line, :trace, :encoding, coalesce(:data, x''), :remember, :follow_due
)
on conflict do nothing

-- @statement take
-- A live job has the key from now on.
delete from millpond_remembered where queue = :queue and key = :key

-- @statement holders
-- In:  ids, a JSON list. Out: those that have keys. To be read before they end or are removed.
select job.id, state, job.key, remember, pushed_at from json_each(:ids) as given cross join millpond_jobs as job
where job.id = given.value and job.key is not null and follow_due is null

-- @statement due
-- The job that a follower followed has ended: it has the key, and is due.
update millpond_jobs set due_at = max(:now, follow_due), follow_due = null where id = :id returning due_at

-- @statement postpone
-- An update of a follower: from when it may start.
update millpond_jobs set follow_due = :due_at where id = :id

-- @statement remember
-- In:  until, later than now. What is remembered for longer stays.
insert into millpond_remembered (queue, key, id, until) values (:queue, :key, :id, :until)
on conflict do update set id = excluded.id, until = excluded.until where until < excluded.until

-- @statement forget
-- The job was removed, or cancelled.
delete from millpond_remembered where queue = :queue and key = :key and id = :id

-- @statement over
-- Whether there are keys that are remembered no longer.
select 1 as found from millpond_remembered indexed by millpond_remembered_until where until <= :now limit 1

-- @statement expire
delete from millpond_remembered where (queue, key) in (
  select queue, key from millpond_remembered indexed by millpond_remembered_until where until <= :now order by until limit :limit
)

-- @statement forget_all
-- The queue was removed.
delete from millpond_remembered where queue = :queue
