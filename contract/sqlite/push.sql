-- push: stores jobs.
-- In:  one job; line: of a waiting job in a grouped queue what `touch` and `line` give for its group, else null; state
--      is waiting if due_at <= now, else scheduled; due_at is never before now.
-- Out: changes = 1: pushed. changes = 0: the id is known, or a live job has the key; `existing` names that job.
-- Fences go on from those of jobs that were removed: one with the id of such a job may be pushed again.
-- Invariant: `seq` is one more than the greatest there is, so places follow the order of pushes.
-- Some drivers bind bytes of length 0 as null, hence the coalesce.
-- Where the queue has a capacity and is full, run `existing` first: a repeated push is not refused.

-- @statement insert
insert into millpond_jobs
  (id, queue, state, priority, fence, attempts, pushed_at, due_at, timeout, key, "group", cost, line, trace, encoding, data)
values (
  :id, :queue, :state, :priority, ifnull((select value from millpond_meta where key = 'removed'), 0),
  :attempts, :now, :due_at, :timeout, :key, :group, :cost, :line, :trace, :encoding, coalesce(:data, x'')
)
on conflict do nothing

-- @statement insert_list
-- In:  jobs that differ in id and data alone, without keys: `bodies`, a JSON list of their data, which is JSON as text itself; `ids`, the
--      ids one after the other, 36 characters each. (A list of pairs takes a quarter more: each pair would be written out and read again.)
-- Out: changes: all of them. If an id is known, or there twice, it fails with SQLITE_CONSTRAINT (19) and stores
-- nothing: insert each by itself. Only where the queue has room for all.
-- A character of an id has two bytes in a file whose encoding is UTF-16.
insert into millpond_jobs
  (id, queue, state, priority, fence, attempts, pushed_at, due_at, timeout, "group", cost, line, trace, encoding, data)
select
  cast(substr(cast(:ids as blob), 36 * length(cast('0' as blob)) * key + 1, 36 * length(cast('0' as blob))) as text),
  :queue, :state, :priority, ifnull((select value from millpond_meta where key = 'removed'), 0),
  :attempts, :now, :due_at, :timeout, :group, :cost, :line, :trace, 'json', value
from json_each(:bodies)

-- @statement touch
-- Run before jobs come into a line, so that the group is there. If the insert then stores nothing, a touch does no harm.
-- A group that has a ticket at this priority or a higher one goes on with the job that it would have started next.
insert into millpond_groups (queue, name) values (:queue, ifnull(:group, '')) on conflict do update set touched = 1 where ticket < :priority

-- @statement line
select id from millpond_groups where queue = :queue and name = ifnull(:group, '')

-- @statement existing
select id from millpond_jobs where id = :id
union all
select id from millpond_jobs
where queue = :queue and key = :key and key is not null and follow_due is null and state in ('blocked', 'scheduled', 'waiting', 'running')
limit 1
