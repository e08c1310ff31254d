-- counts: what an operation reads of a queue first, and what it writes last.
-- In:  queue; by how much a state's count changed in this transaction; what happened.
-- Out: nothing, or the queue's row.
-- Invariant: run once per queue and transaction, before its commit, so that counts and jobs never disagree.

-- @statement queue
-- held: scheduled and waiting jobs, which the capacity bounds; 0 where there is none.
select name, capacity, keep_done, keep_dead, paused, attempts, timeout, lease,
  case when capacity is null then 0 else (
    select coalesce(sum(count), 0) from millpond_counts where queue = name and state in ('scheduled', 'waiting')
  ) end as held
from millpond_queues where name = :queue

-- @statement create
insert into millpond_queues (name) values (:queue) on conflict do nothing

-- @statement count
insert into millpond_counts (queue, state, count) values (:queue, :state, :change)
on conflict do update set count = count + excluded.count

-- @statement totals
update millpond_queues set
  ready_total     = ready_total     + :ready,
  finished_total  = finished_total  + :finished,
  cancelled_total = cancelled_total + :cancelled
where name = :queue

-- @statement watch
-- What another process compares with what it saw last, once `pragma data_version` says that something changed.
select name, capacity, paused, ready_total, finished_total, cancelled_total,
  (select coalesce(sum(count), 0) from millpond_counts where queue = name and state = 'waiting') as waiting,
  (select coalesce(sum(count), 0) from millpond_counts where queue = name and state = 'scheduled') as scheduled
from millpond_queues
