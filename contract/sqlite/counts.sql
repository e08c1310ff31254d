-- counts: what an operation reads of a queue first, and what it writes last.
-- In:  queue; by how much each count changed in this transaction; what is added to the totals.
-- Out: nothing, or the queue's row.
-- Invariant: run once per queue and transaction, before its commit, so that counts and jobs never disagree.

-- @statement queue
-- scheduled and waiting: the jobs that the capacity bounds. limits: JSON, with how many jobs run; null: there are none, and no pause was set.
select capacity, keep_done, keep_dead, paused, attempts, timeout, lease, scheduled, waiting,
  case when most is not null or rate is not null or grouped = 1 or paused_until > 0 then json_object(
    'running', running, 'full', "full", 'pausedUntil', paused_until, 'limits', json_object(
      'running', most, 'rate', json(rate), 'grouped', json(iif(grouped, 'true', 'false')),
      'groupRunning', group_most, 'groupRate', json(group_rate)
    )
  ) end as limits
from millpond_queues where name = :queue

-- @statement create
insert into millpond_queues (name) values (:queue) on conflict do nothing

-- @statement add
update millpond_queues set
  scheduled       = scheduled       + :scheduled,
  waiting         = waiting         + :waiting,
  running         = running         + :running,
  done            = done            + :done,
  dead            = dead            + :dead,
  cancelled       = cancelled       + :cancelled,
  ready_total     = ready_total     + :ready_total,
  finished_total  = finished_total  + :finished_total,
  cancelled_total = cancelled_total + :cancelled_total
where name = :queue

-- @statement watch
-- What another process compares with what it saw last, once `pragma data_version` says that something changed.
select name, capacity, paused, scheduled, waiting, ready_total, finished_total, cancelled_total,
  running, limits_total, most is not null or grouped = 1 as has_limits
from millpond_queues
