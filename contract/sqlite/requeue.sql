-- requeue: dead or cancelled jobs get another life.
-- In:  ids, one at a time; or queue and limit: its dead ones, longest dead first; until: only those that were dead at this time, null: all.
-- Out: of `requeue`, changes = 1: it waits again. changes = 0: a live job has its key; it stays as it is.
-- In a queue whose `graphs` is 1, run graphs/reopen and graphs/block_again for those that wait again. Then, in a grouped queue, run
-- limits/line_up_groups and limits/line_up.
-- Invariant: place, fence and last error are kept; the attempts begin anew.

-- @statement look
select seq, id, queue, state, key from millpond_jobs where id = :id and state in ('dead', 'cancelled')

-- @statement dead
-- Those whose key a live job has are left out here, so that they cannot fill the limit and hide others for ever.
select seq, id, queue, state, key from millpond_jobs as dead indexed by millpond_finished
where queue = :queue and state = 'dead' and finished_at is not null
  and (:until is null or finished_at < :until or finished_at = :until and due_at < :until)
  and (key is null or not exists (
    select 1 from millpond_jobs as live
    where live.queue = dead.queue and live.key = dead.key and live.key is not null and live.follow_due is null
      and live.state in ('blocked', 'scheduled', 'waiting', 'running')
  ))
order by finished_at, seq
limit :limit

-- @statement requeue
update or ignore millpond_jobs set
  state = 'waiting', attempt = 0, due_at = :now, finished_at = null, started_at = null, worker = null
where id = :id and state in ('dead', 'cancelled')
