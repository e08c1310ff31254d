-- ahead: how many waiting jobs come before one.
-- In:  id.
-- Out: ahead: those of its queue, or of its line, up to 1,000; no row: it does not wait.
-- Invariant: reads no more rows than it counts.

-- @statement ahead
select count(before.seq) as ahead
from millpond_jobs as job
left join millpond_jobs as before on before.seq in (
  select seq from (
    select seq from millpond_jobs indexed by millpond_waiting
    where queue = job.queue and line is job.line and state = 'waiting' and priority > job.priority
    limit 1000
  )
  union all
  select seq from (
    select seq from millpond_jobs indexed by millpond_waiting
    where queue = job.queue and line is job.line and state = 'waiting' and priority = job.priority and seq < job.seq
    limit 1000
  )
  limit 1000
)
where job.id = :id and job.state = 'waiting'
group by job.seq
