-- workers: who works. heartbeat keeps it, workers tells it, the sweep forgets it.
-- In:  of heartbeat: id, queue, host, pid, slots, busy, lanes (JSON list, or null), now, one worker at a time; id of one that is gone.
-- Out: of `heard`, changes = 0: there is no such queue. Of `list` every column and `silence`, of `queue` or, if that is null, of all.
-- Invariant: a worker that was not heard of for 60 s is not told any more.

-- @statement beat
insert into millpond_workers (id, queue, host, pid, slots, busy, lanes, since, seen)
values (:id, :queue, :host, :pid, :slots, :busy, :lanes, :now, :now)
on conflict do update set
  host = excluded.host, pid = excluded.pid, slots = excluded.slots, busy = excluded.busy, lanes = excluded.lanes,
  since = iif(seen + 60000 < excluded.seen, excluded.since, since), seen = excluded.seen

-- @statement heard
update millpond_queues set heard_at = :now where name = :queue

-- @statement gone
delete from millpond_workers where id = :id

-- @statement list
select *, max(0, :now - seen) as silence from millpond_workers
where (:queue is null or queue = :queue) and seen + 60000 >= :now
order by since, id, queue

-- @statement silent
-- Whether there are any to forget.
select 1 as found from millpond_workers where seen + 60000 < :now limit 1

-- @statement forget
delete from millpond_workers where seen + 60000 < :now
