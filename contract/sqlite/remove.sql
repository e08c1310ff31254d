-- remove: jobs are unknown from now on, as if they had never been pushed.
-- In:  id; or queue, state and limit, as the first page of list; or queue.
-- Out: `look` and `list`: id, queue, state and fence of the jobs. Run `remove` for each, which tells its state by then (held: 1: no
--      count has it; run graphs/unhold);
--      then `fence`. `queue`, changes = 0: it still has jobs.
-- Invariant: what the triggers of limits.sql count of a job goes with it. A queue that is removed has no jobs.

-- @statement look
select id, queue, state, fence from millpond_jobs where id = :id

-- @statement blocked
select id, queue, state, fence from millpond_jobs indexed by millpond_blocked
where queue = :queue and state = 'blocked' limit :limit

-- @statement waiting
select id, queue, state, fence from millpond_jobs indexed by millpond_waiting
where queue = :queue and state = 'waiting' limit :limit

-- @statement scheduled
select id, queue, state, fence from millpond_jobs indexed by millpond_scheduled
where queue = :queue and state = 'scheduled' order by due_at, seq limit :limit

-- @statement running
select id, queue, state, fence from millpond_jobs indexed by millpond_running
where queue = :queue and state = 'running' order by lease_until, seq limit :limit

-- @statement final
select id, queue, state, fence from millpond_jobs indexed by millpond_finished
where queue = :queue and state = :state and finished_at is not null order by finished_at desc, seq desc limit :limit

-- @statement remove
delete from millpond_jobs where id = :id returning state, seq, state = 'done' and finished_at is null as held

-- @statement fence
-- After `remove`, with the highest fence of the jobs: later pushes begin one above it, so not even `extend` takes an old claim for theirs.
insert into millpond_meta (key, value) values ('removed', cast(:fence + 1 as integer))
on conflict do update set value = max(value, excluded.value)

-- @statement queue
-- Counts that this transaction has summed up are written before.
delete from millpond_queues
where name = :queue and not exists (select 1 from millpond_counts where queue = :queue and kind = 'state' and count > 0)

-- @statement removals
-- After `queue`, if it removed the row.
insert into millpond_meta (key, value) values ('removals', 1) on conflict do update set value = value + 1

-- @statement known
-- removals: how many queues were removed, for a client that gives settings again where another program has emptied the tables. A queue
-- that is missing may have been removed, if this has risen since its settings were given.
select cast(ifnull((select value from millpond_meta where key = 'removals'), 0) as integer) as removals
