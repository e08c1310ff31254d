-- relatives: the parents and children of a job: graphs.sql.
-- In:  id; of the lists seq and limit.
-- Out: `job`: its place, queue and state; no row: unknown. Ids, in their order.
-- Invariant: no more than 10,001 children are looked at.

-- @statement job
select seq, queue, state from millpond_jobs where id = :id

-- @statement parents
-- gone: it is not there any more.
select coalesce(job.id, awaited.parent) as id, 0 as gone
from millpond_links as link indexed by millpond_parents
left join millpond_jobs as job on job.seq = link.parent
left join millpond_awaited as awaited on awaited.node = link.parent
where link.child = :seq and coalesce(job.id, awaited.parent) is not null
union all
select parent, 1 from millpond_gone where child = :seq
order by 1
limit :limit

-- @statement children
-- By id, of the first 10,001 by place.
select id from (select child from millpond_links where parent = :seq order by child limit 10001) join millpond_jobs on seq = child
order by id
limit :limit
