-- stats: what people look at.
-- In:  queue (null: every queue); now; minute: the first one whose histograms count.
-- Out: settings and counts per queue; when the oldest waiting job became due; histograms, merged over the minutes.
-- Invariant: nothing here scans the jobs.

-- @statement queues
-- counts: JSON. limits and start_at: see millpond_limits.
-- oldest: the earliest time due among the first 64 by place of each priority. Jobs come due nearly in the order of their places, so
-- this is exact for short queues and close for long ones; an index of its own would tax every claim.
-- Of a grouped queue, among the first 8 of each line of its first 1,000 groups with jobs.
select name, paused, capacity, grouped, limits, start_at,
  json_object(
    'scheduled', scheduled, 'waiting', waiting, 'running', running, 'done', done, 'dead', dead, 'cancelled', cancelled
  ) as counts,
  (
    select min(due_at) from (
      select (
        select min(due_at) from (
          select due_at from millpond_jobs indexed by millpond_waiting
          where queue = q.name and state = 'waiting' and line is null and priority = each.value
          order by seq
          limit 64
        )
      ) as due_at from json_each('[0,1,2,3,4,5,6,7,8,9]') as each
      union all
      select (
        select min(due_at) from (
          select due_at from millpond_lines where group_id = line.id order by rank, seq limit 8
        )
      ) from (select id from millpond_groups where queue = q.name and (place > 0 or touched = 1) limit 1000) as line
    )
  ) as oldest
from millpond_limits as q
where :queue is null or name = :queue
order by name

-- @statement histograms
-- buckets: JSON, each bucket's count.
select queue, priority, metric, json_group_object(bucket, count) as buckets
from (
  select queue, priority, metric, bucket, sum(count) as count
  from millpond_histograms
  where minute >= :minute and (:queue is null or queue = :queue)
  group by queue, priority, metric, bucket
)
group by queue, priority, metric
order by queue, priority, metric

-- @statement blocked
-- Of the groups with waiting jobs, how many wait for a slot, and how many for their rate or a pause. Up to 10,000 groups are looked at; what the
-- last claim has noted of a group holds until it is touched.
select ifnull(sum(at_limit), 0) as at_limit, ifnull(sum(held), 0) as held
from (
  select touched = 0 and place > 0 and ticket < 0 and held_until is null as at_limit, touched = 0 and ifnull(held_until > :now, 0) as held
  from (select * from millpond_groups where queue = :queue limit 10000)
  union all
  select start_at is null, ifnull(start_at > :now, 0)
  from (select id from millpond_groups indexed by millpond_touched where queue = :queue and touched = 1 limit 10000) as g
  cross join millpond_heads as head on head.id = g.id
  where head.place is not null
)
