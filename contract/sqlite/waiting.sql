-- waiting: where a queue's waiting jobs are, as stretches of places. Part of every operation after which jobs wait, and of claim.
-- In:  queue, priority; seq, the place of a job; first and last, those of a stretch.
-- Out: of `newest` and `before` a stretch, or no row.
-- Invariant: every waiting job lies in a stretch of its queue and priority, and those never overlap. Not every place in a stretch is a
--            waiting job of that queue: some were cancelled, others are of other queues and priorities.
--            So whoever reads a stretch looks at state, queue and priority too.

-- @statement newest
-- Before pushed jobs are added, whose places are greater than all others. A stretch from there on is of jobs that have gone: `forget` it, and look again.
select first, last from millpond_waiting
where queue = :queue and priority = :priority
order by first desc
limit 1

-- @statement forget
delete from millpond_waiting where queue = :queue and priority = :priority and first >= :first

-- @statement before
-- Before a job is added that waits again. If it lies in this stretch nothing is left to do.
select first, last from millpond_waiting
where queue = :queue and priority = :priority and first <= :seq
order by first desc
limit 1

-- @statement grow
-- Where the stretch found ends at most 32 places before those to be added, or later. What is between is stepped over.
update millpond_waiting set last = :last where queue = :queue and priority = :priority and first = :first

-- @statement add
-- Where it ends further before, or there is none.
insert into millpond_waiting (queue, priority, first, last) values (:queue, :priority, :first, :last)

-- @statement shrink
-- After a claim that ended with this job, or the cancelling of the first: the stretch goes on behind it.
update millpond_waiting set first = :seq + 1
where queue = :queue and priority = :priority and first <= :seq and last > :seq

-- @statement remove
-- Then those that it went through, in this priority and the higher ones.
delete from millpond_waiting where queue = :queue and priority = :priority and first <= :seq

-- @statement remove_higher
delete from millpond_waiting where queue = :queue and priority > :priority

-- @statement drop
-- A stretch whose only job was cancelled. Of a longer one that begins with the cancelled job the rest goes on: `shrink`.
delete from millpond_waiting where queue = :queue and priority = :priority and first = :first

-- @statement clear
-- After a claim that found fewer than it may take: none waits any more.
delete from millpond_waiting where queue = :queue
