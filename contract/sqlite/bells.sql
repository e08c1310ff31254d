-- bells: what happened in the queues since this connection looked last.
-- In:  queues: the names of those to look at, as JSON; null: all of them.
-- Out: a row per queue that has changed; work and room: 1 if that bell is to be rung; finished and cancelled: how many jobs were.
-- Invariant: no change is missed. The first look sees all that is there as new.

-- @statement seen
-- Once on each connection that looks: what the last look saw of each queue, and what it told.
create temp table if not exists millpond_seen (
  name      text primary key,
  capacity  integer,
  paused    integer not null,
  held      integer not null,
  running   integer not null,
  ready     integer not null,
  soon      integer not null,
  finished  integer not null,
  stopped   integer not null,
  limits    integer not null,
  work      integer not null,
  room      integer not null,
  ended     integer not null,
  cancelled integer not null
) strict

-- @statement look
-- One statement, so that what it compares and what it keeps is the same.
-- work: jobs are due soon, so that a claim tells when; or jobs wait, and more became ready, limits or a pause changed,
-- or a job under limits has given its place to another.
-- room: the queue has or had a capacity, there is room now, and something happened. (Pushes between two looks may have
-- found it full.) Each sign says that something happened, also where counts are the same as before. A queue that is
-- new, though one of its name was seen, has fewer finished jobs.
replace into millpond_seen
select
  name, capacity, paused, held, running, ready, soon, finished, stopped, limits,
  became_due or waiting > 0 and (
    became_ready or limits_changed or limited and (ended <> 0 or running < was_running)
  ),
  ifnull(capacity, was_capacity) is not null and (capacity is null or held < capacity),
  ended, cancelled
from (
  select
    now.*,
    seen.capacity as was_capacity, ifnull(seen.paused, 0) as was_paused,
    ifnull(seen.held, 0) as was_held, ifnull(seen.running, 0) as was_running,
    now.ready <> ifnull(seen.ready, 0) or now.finished < ifnull(seen.finished, 0) as became_ready,
    now.soon <> ifnull(seen.soon, 0) as became_due,
    now.limits <> ifnull(seen.limits, 0) as limits_changed,
    now.finished - ifnull(seen.finished, 0) as ended,
    now.stopped - ifnull(seen.stopped, 0) as cancelled
  from (
    select
      q.name, q.capacity, q.paused, q.most is not null or q.grouped = 1 as limited,
      sum(iif(kind = 'state' and c.name in ('blocked', 'scheduled', 'waiting'), count, 0)) as held,
      sum(iif(kind = 'state' and c.name = 'waiting', count, 0)) as waiting,
      sum(iif(kind = 'state' and c.name = 'running', count, 0)) as running,
      sum(iif(kind = 'sign' and c.name = 'ready', count, 0)) as ready,
      sum(iif(kind = 'sign' and c.name = 'soon', count, 0)) as soon,
      sum(iif(kind = 'sign' and c.name = 'finished', count, 0)) as finished,
      sum(iif(kind = 'sign' and c.name = 'stopped', count, 0)) as stopped,
      sum(iif(kind = 'sign' and c.name = 'limits', count, 0)) as limits
    from json_each(ifnull(:queues, (select json_group_array(name) from millpond_queues))) as asked
    cross join millpond_queues as q on q.name = asked.value
    left join millpond_counts as c on c.queue = q.name
    group by q.name
  ) as now
  left join millpond_seen as seen on seen.name = now.name
)
where became_ready or became_due or limits_changed or ended <> 0 or cancelled <> 0 or held <> was_held or running <> was_running
  or paused <> was_paused or capacity is not was_capacity
returning name, work, room, ended as finished, cancelled

-- @statement gone
-- The queues that were removed since the last look. Ring room, finished and cancelled: nobody can tell what went with the queue.
delete from millpond_seen where name not in (select name from millpond_queues) returning name
