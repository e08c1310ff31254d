-- counts: what an operation reads of a queue first, and what it writes last.
-- In:  queue; by how much each count changed in this transaction; what is added to the totals.
-- Out: nothing, or the queue's row.
-- Invariant: run for each queue that a transaction has changed, before its commit at the latest, so that counts and jobs never disagree.

-- @statement queue
-- room: how many more scheduled and waiting jobs the capacity allows; null: any number. slots: how many more jobs may run; null: any number.
-- bounded: 1 if slots or a rate bound the starts of the queue as a whole. limited: 1 if a limit or rate of any kind does. limits and held_until:
-- see millpond_limits. claimed_at: when a claim last looked at groups.
select keep_done, keep_dead, paused, attempts, timeout, lease, grouped, limits, held_until, claimed_at,
  capacity - scheduled - waiting as room,
  max(0, most - running) as slots,
  coalesce(most, rate) is not null as bounded,
  coalesce(most, rate, group_rate) is not null as limited
from millpond_limits where name = :queue

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
  soon_total      = soon_total      + :soon_total,
  finished_total  = finished_total  + :finished_total,
  cancelled_total = cancelled_total + :cancelled_total
where name = :queue
