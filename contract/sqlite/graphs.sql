-- graphs: jobs that wait for others, their parents: contract/graphs.md.
-- In:  jobs by their places (`seq`), in JSON lists. `ended`: lists of parent, after, until and id: the links of a parent to the children
--      with after < seq <= until. open: 1, or 2 with onDead `run`; of a link that is closed, that below 0.
-- Out: rows of jobs and links.
-- Invariant: only queues whose `graphs` is 1 have jobs with links. The others run nothing of this. A blocked job has an open link.

-- @statement mark
-- Before a job of the queue gets its first link. Then the queue is read anew.
update millpond_queues set graphs = 1 where name = :queue and graphs = 0

-- @statement parents
-- In: ids. A job that is not there has no row.
select job.id, seq, job.queue, state from json_each(:ids) as given cross join millpond_jobs as job on job.id = given.value

-- @statement last
-- The place of the job that was pushed last.
select ifnull(max(seq), 0) as seq from millpond_jobs

-- @statement link
-- In: links, lists of parent, child and open.
insert into millpond_links (parent, child, open)
select value ->> 0, value ->> 1, value ->> 2 from json_each(:links) where true
on conflict do update set open = excluded.open

-- @statement block
-- In: jobs, of a list that push/insert_list has just stored. These wait for others; `free`: these do not.
update millpond_jobs set state = 'blocked', line = null where seq in (select value from json_each(:jobs))

-- @statement free
update millpond_jobs set state = :state where seq in (select value from json_each(:jobs))

-- @statement link_list
-- In: first and open of all; links: numbers, each a parent's index in the list of jobs × 131072 + its child's.
insert into millpond_links (parent, child, open)
select :first + (value >> 17), :first + (value & 131071), :open from json_each(:links)

-- @statement part_of
-- The job `seq` is part of the work of `part_of`: each other job that waits for that one waits for it too.
insert into millpond_links (parent, child, open)
select :seq, child, open from millpond_links as link cross join millpond_jobs as job on job.seq = child
where parent = :part_of and open > 0 and child <> :seq and job.state = 'blocked'
on conflict do nothing

-- @statement linked
-- In: ids. Those of them that have links. To be read before they end or are removed. pending: a part of its links is left by an
-- earlier end.
select * from (
  select job.id, seq,
    exists (select 1 from millpond_links where parent = seq) as has_children,
    exists (select 1 from millpond_links indexed by millpond_parents where child = seq)
      or exists (select 1 from millpond_gone where child = seq) as has_parents,
    exists (select 1 from millpond_ended indexed by millpond_ended_parent where parent = seq) as pending
  from json_each(:ids) as given cross join millpond_jobs as job on job.id = given.value
)
where has_children or has_parents

-- @statement children
-- The links of `ended`, in their order. at: which of them. If there are as many rows as the limit, more may be left.
select given.key as at, link.child, link.open
from json_each(:ended) as given cross join millpond_links as link
  on link.parent = given.value ->> 0 and link.child > given.value ->> 1 and link.child <= given.value ->> 2
limit :limit

-- @statement close
update millpond_links set open = -open
where (parent, child) in (
  select link.parent, link.child
  from json_each(:ended) as given cross join millpond_links as link
    on link.parent = given.value ->> 0 and link.child > given.value ->> 1 and link.child <= given.value ->> 2
  where open > 0
)

-- @statement gone
-- Of parents that are gone, before `drop`: their live children are told of them.
insert into millpond_gone (child, parent)
select link.child, given.value ->> 3
from json_each(:ended) as given cross join millpond_links as link
  on link.parent = given.value ->> 0 and link.child > given.value ->> 1 and link.child <= given.value ->> 2
cross join millpond_jobs as job on job.seq = link.child
where job.state in ('blocked', 'scheduled', 'waiting', 'running')
on conflict do nothing

-- @statement drop
-- Of parents that are gone, after `close` and `gone`.
delete from millpond_links
where (parent, child) in (
  select link.parent, link.child
  from json_each(:ended) as given cross join millpond_links as link
    on link.parent = given.value ->> 0 and link.child > given.value ->> 1 and link.child <= given.value ->> 2
  where open <= 0
)

-- @statement reopen
-- In: children, which have just come back. Their links to live parents are open, all others are closed.
update millpond_links set open = iif(
  exists (
    select 1 from millpond_jobs as job where job.seq = parent and job.state in ('blocked', 'scheduled', 'waiting', 'running')
  ), max(abs(open), 1), -abs(open)
)
where (parent, child) in (
  select link.parent, link.child
  from json_each(:children) as given cross join millpond_links as link indexed by millpond_parents on link.child = given.value
)

-- @statement block_again
-- After `reopen`: those that wait for others.
update millpond_jobs set state = 'blocked', line = null
where seq in (select value from json_each(:children)) and state = 'waiting'
  and exists (select 1 from millpond_links indexed by millpond_parents where child = seq and open > 0)
returning queue

-- @statement cancel
-- In: children, error (JSON). Those that are blocked. In a queue whose `once` is 1, a follower of the key may be due: once/follower.
update millpond_jobs set state = 'cancelled', finished_at = :now, error = :error, parked = null
where seq in (select value from json_each(:children)) and state = 'blocked'
returning seq, id, queue, key

-- @statement remove
-- Cancelled ones, where the queue's keep_dead is 0.
delete from millpond_jobs where seq in (select value from json_each(:children))

-- @statement release
-- After `close` and `cancel`: those of `children` that have no open link left. In a grouped queue, line up.
update millpond_jobs set state = iif(due_at > :now, 'scheduled', 'waiting'), due_at = max(due_at, :now)
where seq in (select value from json_each(:children)) and state = 'blocked'
  and not exists (select 1 from millpond_links indexed by millpond_parents where child = seq and open > 0)
returning queue, state, due_at

-- @statement forget
-- In: children, which are removed.
delete from millpond_links
where (parent, child) in (
  select link.parent, link.child
  from json_each(:children) as given cross join millpond_links as link indexed by millpond_parents on link.child = given.value
)
returning parent

-- @statement forget_gone
-- In: children, which are removed.
delete from millpond_gone where child in (select value from json_each(:children))

-- @statement shrink
-- After `forget`, if anything is left for sweeps, and before `over`: another job may get the place of one that was removed.
update millpond_ended set until = ifnull((
  select max(child) from millpond_links as link where link.parent = millpond_ended.parent and child <= until
), 0)

-- @statement over
delete from millpond_ended where until <= after

-- @statement later
-- The rest of an ended job's links is left for sweeps. What an earlier end of the same job has left comes before it.
insert into millpond_ended (parent, id, state, after, until)
select :parent, :id, :state, max(:after, ifnull(begun, :after)), min(:until, last)
from (
  select (select max(child) from millpond_links where parent = :parent) as last,
    (select max(until) from millpond_ended indexed by millpond_ended_parent where parent = :parent and :state <> 'gone') as begun
)
where last is not null

-- @statement ended
-- gone: it is not there any more.
select number, parent, id, state, after, until,
  not exists (select 1 from millpond_jobs as job where job.seq = parent and job.id = millpond_ended.id) as gone
from millpond_ended
order by number
limit :limit

-- @statement settled
delete from millpond_ended where number = :number

-- @statement go_on
update millpond_ended set after = :after where number = :number

-- @statement expiring
-- Those of the jobs that sweep/expire removes next.
select id from millpond_jobs indexed by millpond_finished
where queue = :queue and state = :state and finished_at <= :now - (
  select iif(:state = 'done', keep_done, keep_dead) from millpond_queues where name = :queue
)
order by finished_at, seq
limit :limit

-- @statement live_child
-- The first live child of a job, from the place :child on.
select link.child from millpond_links as link cross join millpond_jobs as job on job.seq = link.child
where link.parent = :seq and link.child >= :child and job.state in ('blocked', 'scheduled', 'waiting', 'running')
order by link.child
limit 1

-- @statement hold
-- In: child, the first live one of this done job. Then `unlist`, before sweep/expire.
insert into millpond_kept (seq, finished_at, child, look_at)
select seq, finished_at, :child, :now + 60000 from millpond_jobs where seq = :seq
on conflict do update set finished_at = excluded.finished_at, child = excluded.child, look_at = excluded.look_at

-- @statement unlist
update millpond_jobs set finished_at = null where seq = :seq

-- @statement held
-- Those to look at: 100 at most. A later time than in a minute is that of a clock that went back. Without an id, the job was removed by
-- another program.
select held.seq, held.child, job.id, job.queue
from (
  select * from (
    select seq, child from millpond_kept indexed by millpond_kept_looks where look_at <= :now order by look_at limit 100
  )
  union all
  select * from (select seq, child from millpond_kept indexed by millpond_kept_looks where look_at > :now + 60000 limit 100)
) as held left join millpond_jobs as job on job.seq = held.seq and job.state = 'done' and job.finished_at is null

-- @statement look_again
update millpond_kept set child = :child, look_at = :now + 60000 where seq = :seq

-- @statement unhold
-- It is removed.
delete from millpond_kept where seq = :seq

-- @statement held_at
-- When a job finished whose `finished_at` is null.
select finished_at from millpond_kept where seq = :seq

-- @statement held_of
-- Of a queue that is removed, after all other jobs.
select id, queue, state, fence from millpond_kept cross join millpond_jobs using (seq) where queue = :queue limit :limit

-- @statement waits
-- Of a blocked job: how many of its links are open, and what is open of them.
select count(*) as links, max(open) as open from millpond_links indexed by millpond_parents where child = :seq and open > 0

-- @statement awaits
-- Whether there are jobs that are awaited: each one that comes is looked up then.
select 1 as found from millpond_awaited limit 1

-- @statement await
-- A job that is not there is awaited, by its id. Run `await_all` after it, and read the queues anew.
insert into millpond_awaited (parent, node) values (:id, ifnull((select min(node) from millpond_awaited), 0) - 1) on conflict do nothing

-- @statement await_all
update millpond_queues set graphs = 1 where graphs = 0

-- @statement awaited
select node from millpond_awaited where parent = :id

-- @statement come
-- It is there, at `seq`: its links are those of the job now.
update millpond_links set parent = :seq where parent = :node

-- @statement unawaited
-- Nobody waits for it any more, or it is there.
delete from millpond_awaited where node = :node and not exists (select 1 from millpond_links where parent = :node)

-- @statement unfounded
-- Another program has removed all jobs. Run `shrink` and `over` after it.
delete from millpond_links where (select max(seq) from millpond_jobs) is null

-- @statement unfounded_gone
delete from millpond_gone where (select max(seq) from millpond_jobs) is null
