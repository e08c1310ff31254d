-- counts: what an operation reads of a queue first, and what it writes last.
-- In:  queue; by how much each count changed in this transaction.
-- Out: nothing, or the queue's row.
-- Invariant: run for each queue that a transaction has changed, before its commit at the latest, so that counts and jobs never disagree.

-- @statement queue
-- room: how many more blocked, scheduled and waiting jobs the capacity allows; null: any number. slots: how many more jobs may
-- run; null: any number. bounded: 1 if slots or a rate bound the starts of the queue as a whole. limited: 1 if a limit
-- or rate of any kind does. limits and held_until: see millpond_limits. claimed_at: when a claim last looked at groups. 
-- once: 1 where endings look at keys: once.sql. graphs: 1 where they look at links: graphs.sql.
select keep_done, keep_dead, paused, attempts, timeout, lease, grouped, limits, held_until, claimed_at, once, graphs,
  capacity - (
    select ifnull(sum(count), 0) from millpond_counts
    where queue = :queue and kind = 'state' and name in ('blocked', 'scheduled', 'waiting')
  ) as room,
  case when most is not null then max(0, most - running) end as slots,
  coalesce(most, rate) is not null as bounded,
  coalesce(most, rate, group_rate) is not null as limited
from millpond_limits where name = :queue

-- @statement create
insert into millpond_queues (name) values (:queue) on conflict do nothing

-- @statement add
-- counts: JSON, a list of changes: kind, name, and by how much.
insert into millpond_counts (queue, kind, name, count)
select :queue, value ->> 0, value ->> 1, value ->> 2 from json_each(:counts) where true
on conflict do update set count = count + excluded.count
