-- schedules: declares, tells, pauses, removes and fires schedules. The client computes times; SQLite compares them.
-- In:  of declare: a declaration as contract/operations.md has it, with the job's fields beside the others, and now.
-- Out: see each statement.
-- Invariant: the next time moves on in the transaction that pushes the jobs of the time before.

-- @statement outcome
-- No row: `created`, run `store`; or `unknown` if the declaration is made again. same: run `seen`. changed: run `store`.
select case
  when version = :version then 'same'
  when seen_at + 90000 > :now and exists (select 1 from json_each(former) where value = :version) then 'kept'
  else 'changed'
end as outcome
from millpond_schedules where name = :name

-- @statement seen
update millpond_schedules set seen_at = :now where name = :name

-- @statement store
-- What people do, paused, stays; so does the next time, unless other times were declared, and if it is due already.
insert into millpond_schedules (
  name, version, "when", tz, missed, jitter, "from", until, paused, next_at, changed_at, seen_at,
  queue, priority, key, "group", cost, attempts, timeout, encoding, data
) values (
  :name, :version, :when, :tz, :missed, :jitter, :from, :until, :paused, :now, :now, :now,
  :queue, :priority, :key, :group, :cost, :attempts, :timeout, :encoding, coalesce(:data, x'')
)
on conflict do update set
  former = (
    select json_group_array(version) from (
      select millpond_schedules.version as version
      union all
      select value from json_each(millpond_schedules.former) where value <> excluded.version
      limit 16
    )
  ),
  planned = planned and (
    "when" = excluded."when" and tz = excluded.tz and "from" is excluded."from" and until is excluded.until
    or ifnull(next_at <= excluded.next_at, 0)
  ),
  next_at = iif(
    "when" = excluded."when" and tz = excluded.tz and "from" is excluded."from" and until is excluded.until
      or planned and ifnull(next_at <= excluded.next_at, 0), next_at, excluded.next_at
  ),
  version = excluded.version, "when" = excluded."when", tz = excluded.tz, missed = excluded.missed, jitter = excluded.jitter,
  "from" = excluded."from", until = excluded.until, changed_at = excluded.changed_at, seen_at = excluded.seen_at,
  queue = excluded.queue, priority = excluded.priority, key = excluded.key, "group" = excluded."group", cost = excluded.cost,
  attempts = excluded.attempts, timeout = excluded.timeout, encoding = excluded.encoding, data = excluded.data

-- @statement list
-- Every column, of the schedules after `after`, or of the one named; null: all.
select * from millpond_schedules
where (:after is null or name > :after) and (:name is null or name = :name)
order by name
limit :limit

-- @statement due
-- Every column, at most :limit.
select * from millpond_schedules indexed by millpond_next
where paused = 0 and next_at is not null and next_at <= :now
order by next_at, name
limit :limit

-- @statement next
-- When the next one fires that is not due.
select min(next_at) as next_at from millpond_schedules indexed by millpond_next
where paused = 0 and next_at is not null and next_at > :now

-- @statement pause
-- changes = 0: there is no such schedule. One that goes on already keeps its next time.
update millpond_schedules set
  paused = :paused, planned = iif(paused = 1 and :paused = 0, 0, planned), next_at = iif(paused = 1 and :paused = 0, :now, next_at)
where name = :name

-- @statement remove
-- changes = 0: there is no such schedule.
delete from millpond_schedules where name = :name

-- @statement is_at
-- No row: stale. Else, if the queue has room for all jobs, run `fired`, and push them.
select 1 as found from millpond_schedules where name = :name and version = :version and next_at = :expected and paused = 0

-- @statement fired
-- fired_at: now; null where no job is pushed.
update millpond_schedules set planned = 1, next_at = :next, last_at = ifnull(:fired_at, last_at) where name = :name
