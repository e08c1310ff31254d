-- claim: gives waiting jobs to a worker.
-- In:  queue, worker, limit, now, lease_until, floor: claims that a power cut has undone had no fence above it; see `fences` in millpond_meta.
-- Out: the jobs, in no particular order: sort by priority descending, then seq.
-- Invariant: the fence grows at every claim, by one or to above the floor; a job is in one claim at a time. Not run if the queue is paused.
-- One way is `claim`. The faster one is `look`, then `take` in the same transaction, if `look` says that it has all; or `take_stretch`, if
-- it all comes from one stretch. After either the stretches are shortened (waiting.sql).

-- @statement claim
update millpond_jobs set
  state = 'running', fence = max(fence, :floor) + 1, attempt = attempt + 1,
  worker = :worker, started_at = :now, lease_until = :lease_until
where seq in (
  select job.seq from millpond_waiting as stretch cross join millpond_jobs as job
  where stretch.queue = :queue and job.seq between stretch.first and stretch.last
    and job.state = 'waiting' and job.queue = stretch.queue and job.priority = stretch.priority
  order by stretch.priority desc, stretch.first, job.seq
  limit :limit
)
returning priority, seq, id, fence, attempt, attempts, "group", key, timeout, trace, pushed_at, due_at, encoding, data

-- @statement look
-- In:  queue, limit, floor. Out: count, how many `take` would claim; last, the last of them as (9 - priority) * 2^48 + seq; the least and the greatest
-- priority and beginning of the stretches that they are from; other, how many of them have data that is no JSON or is over 64 KiB;
-- jobs, as they will be once they are claimed, as JSON: a list of lists with what `claim` returns. It lacks the data of the others.
select
  count(*) as count,
  max((9 - priority) * 281474976710656 + seq) as last,
  min(priority) as lowest, max(priority) as highest, min(first) as first, max(first) as latest,
  coalesce(sum(encoding <> 'json' or octet_length(data) > 65536), 0) as other,
  json_group_array(json_array(
    priority, seq, id, max(fence, :floor) + 1, attempt + 1, attempts, "group", key, timeout, trace, pushed_at, due_at, encoding,
    case when encoding = 'json' and octet_length(data) <= 65536 then data end
  )) as jobs
from (
  select job.*, stretch.first from millpond_waiting as stretch cross join millpond_jobs as job
  where stretch.queue = :queue and job.seq between stretch.first and stretch.last
    and job.state = 'waiting' and job.queue = stretch.queue and job.priority = stretch.priority
  order by stretch.priority desc, stretch.first, job.seq
  limit :limit
)

-- @statement take
update millpond_jobs set
  state = 'running', fence = max(fence, :floor) + 1, attempt = attempt + 1,
  worker = :worker, started_at = :now, lease_until = :lease_until
where seq in (
  select job.seq from millpond_waiting as stretch cross join millpond_jobs as job
  where stretch.queue = :queue and job.seq between stretch.first and stretch.last
    and job.state = 'waiting' and job.queue = stretch.queue and job.priority = stretch.priority
  order by stretch.priority desc, stretch.first, job.seq
  limit :limit
)

-- @statement take_stretch
-- In:  first and last, of the stretch and the last job to be claimed; priority.
update millpond_jobs set
  state = 'running', fence = max(fence, :floor) + 1, attempt = attempt + 1,
  worker = :worker, started_at = :now, lease_until = :lease_until
where seq between :first and :last and state = 'waiting' and queue = :queue and priority = :priority

-- @statement probe
-- Whether a claim would find anything: an idle worker's empty claim must not take the write lock.
select 1 as found from millpond_queues where name = :queue and paused = 0 and waiting > 0
