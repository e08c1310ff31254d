-- bells: what happened in the queues since this connection looked last.
-- In:  queues: the names of those to look at, as JSON; null: all of them.
-- Out: a row per queue that has changed; work and room: 1 if that bell is to be rung; finished and cancelled: how many jobs were.
-- Invariant: no change is missed. The first look sees all that is there as new.

-- @statement seen
-- Once on each connection that looks: what the last look saw of each queue, and what it told.
create temp table if not exists millpond_seen (
  name            text primary key,
  capacity        integer,
  paused          integer not null,
  held            integer not null,
  running         integer not null,
  ready_total     integer not null,
  soon_total      integer not null,
  finished_total  integer not null,
  cancelled_total integer not null,
  limits_total    integer not null,
  work            integer not null,
  room            integer not null,
  finished        integer not null,
  cancelled       integer not null
) strict

-- @statement look
-- One statement, so that what it compares and what it keeps is the same.
-- work: jobs are due soon, so that a claim tells when; or jobs wait, and more became ready, limits or a pause changed, or a job under limits has given its place
-- to another.
-- room: the queue has or had a capacity, there is room now, and something happened. (Pushes between two looks may have found it full.)
-- Each total says that something happened, also where counts are the same as before. A queue that is new, though one of its name was seen, has fewer
-- finished jobs.
replace into millpond_seen
select
  name, capacity, paused, held, running, ready_total, soon_total, finished_total, cancelled_total, limits_total,
  became_due or waiting > 0 and (
    became_ready or limits_changed or limited and (finished <> 0 or running < was_running)
  ),
  ifnull(capacity, was_capacity) is not null and (capacity is null or held < capacity),
  finished, cancelled
from (
  select
    q.*, q.scheduled + q.waiting as held, q.most is not null or q.grouped = 1 as limited,
    seen.capacity as was_capacity, ifnull(seen.paused, 0) as was_paused, ifnull(seen.held, 0) as was_held, ifnull(seen.running, 0) as was_running,
    q.ready_total <> ifnull(seen.ready_total, 0) or q.finished_total < ifnull(seen.finished_total, 0) as became_ready,
    q.soon_total <> ifnull(seen.soon_total, 0) as became_due,
    q.limits_total <> ifnull(seen.limits_total, 0) as limits_changed,
    q.finished_total - ifnull(seen.finished_total, 0) as finished,
    q.cancelled_total - ifnull(seen.cancelled_total, 0) as cancelled
  from json_each(ifnull(:queues, (select json_group_array(name) from millpond_queues))) as asked
  cross join millpond_queues as q on q.name = asked.value
  left join millpond_seen as seen on seen.name = q.name
)
where became_ready or became_due or limits_changed or finished <> 0 or cancelled <> 0 or held <> was_held or running <> was_running
  or paused <> was_paused or capacity is not was_capacity
returning name, work, room, finished, cancelled
