-- journal: entries that the steps of a job leave behind, and signals: contract/steps.md.
-- In:  job: its place (`seq`), as `held`, `place`, `named` and `keyed` tell it.
-- Out: rows of jobs and of entries.
-- Invariant: the row of millpond_journals counts the job's entries. A job without entries has no row there, and its `journal` is null, so
--      claims, endings and removals of jobs without journals run nothing of this. A trigger removes a journal with its job.

-- @statement held
-- In: queue, id and fence of a claim. No row: stale.
select seq as job from millpond_jobs where id = :id and fence = :fence and state = 'running' and queue = :queue

-- @statement counts
-- No row: the job has no entries yet.
select entries, bytes, signals, last from millpond_journals where job = :job

-- @statement known
-- Whether it has an entry with the name. Not run without `counts`.
select 1 as found from millpond_entries where job = :job and name = :name

-- @statement add
-- In: n, name, meta; bytes, of all three and the body; encoding and body, or both null. Some drivers bind bytes of length 0 as null, hence
-- the coalesce.
insert into millpond_entries (job, n, name, meta, bytes, encoding, body)
values (:job, :n, :name, :meta, :bytes, :encoding, case when :encoding is not null then coalesce(:body, x'') end)

-- @statement mark
-- With the first entry of the job.
update millpond_jobs set journal = 1 where seq = :job and journal is null

-- @statement grow
-- In: by how much the counts of the journal grow, and the number of its last entry.
insert into millpond_journals (job, entries, bytes, signals, last) values (:job, :entries, :bytes, :signals, :last)
on conflict do update set
  entries = entries + excluded.entries, bytes = bytes + excluded.bytes, signals = signals + excluded.signals, last = excluded.last

-- @statement place
-- In: id. last: the number of its last entry, null: it has none. No row: the job is unknown.
select seq as job, (select max(n) from millpond_entries where job = seq) as last from millpond_jobs where id = :id

-- @statement page
-- In: after, a number; room, in bytes; whole: 1: the first entry comes even if it is larger than the room. (The `total` of the first one is
-- its own size.)
select n, name, meta, bytes, encoding, body from millpond_entries
where job = :job and n > :after and n <= (
  select max(n) from (
    select n, bytes, sum(bytes) over (order by n) as total from millpond_entries where job = :job and n > :after
  )
  where total <= :room or :whole = 1 and total = bytes
)
order by n

-- @statement named
-- In: id of a job that is signalled.
select id, seq as job, queue, state, parked is not null as parked from millpond_jobs where id = :id

-- @statement keyed
-- In: queue and key of a live one.
select id, seq as job, queue, state, parked is not null as parked from millpond_jobs
where queue = :queue and key = :key and key is not null and follow_due is null and state in ('blocked', 'scheduled', 'waiting', 'running')

-- @statement wake
-- Of a parked job that is scheduled. In a grouped queue, line up.
update millpond_jobs set state = 'waiting', due_at = :now where seq = :job

-- @statement forget
-- In: from, a number: entries of the worker from there on are gone. Run `recount` after it.
delete from millpond_entries where job = :job and n >= :from and name not like '!%'

-- @statement recount
update millpond_journals set (entries, bytes) = (
  select count(*), ifnull(sum(bytes), 0) from millpond_entries where job = millpond_journals.job
)
where job = :job
