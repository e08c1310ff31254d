-- stats: what people look at.
-- In:  queue (null: every queue); now; minutes: how far back the histograms go.
-- Out: (Counts and totals that are not there are 0.) Per queue `stats`, and per queue, priority and metric `slice`:
--      JSON with the names and shapes of contract/operations.md.
-- Invariant: nothing here scans the jobs.

-- @statement queues
-- oldest: the earliest time due among the first 64 by place of each priority. Jobs come due nearly in the order of their places, so
-- this is exact for short queues and close for long ones; an index of its own would tax every claim.
-- Of a grouped queue, among the first 8 of each line of its first 1,000 groups with jobs.
-- blocked: of the groups with waiting jobs, how many wait for a slot, and how many for their rate or a pause. Up to
-- 10,000 groups are looked at; what the last claim has noted of a group holds until it is touched.
-- Materialized, as SQLite would count them twice.
with queue as materialized (
  select
    q.*,
    case when most is null or running < most then max(
      min(paused_until, :now + pause_length),
      ifnull((min("full", cast(:now as integer) * 1000 + full_span) - (rate_burst - 1) * rate_step + 999) / 1000, 0)
    ) end as start_at,
    case when exists (
      select 1 from millpond_counts where queue = q.name and kind = 'state' and name = 'waiting' and count > 0
    ) then (
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
            select due_at from millpond_jobs indexed by millpond_waiting
            where queue = q.name and line = g.id and state = 'waiting'
            order by priority desc, seq
            limit 8
          )
        ) from (select id from millpond_groups where queue = q.name and (place > 0 or touched = 1) limit 1000) as g
      )
    ) end as oldest,
    case when grouped = 1 then (
      select json_object('atLimit', sum(at_limit), 'held', sum(held))
      from (
        select touched = 0 and place > 0 and ticket < 0 and held_until is null as at_limit,
          touched = 0 and ifnull(held_until > :now, 0) as held
        from (select * from millpond_groups where queue = q.name limit 10000)
        union all
        select start_at is null, ifnull(start_at > :now, 0)
        from (
          select head.place, case when is_free then max(
              min(paused_until, :now + pause_length),
              ifnull((min("full", cast(:now as integer) * 1000 + full_span) - credit + 999) / 1000, 0)
            ) end as start_at
          from (select id from millpond_groups indexed by millpond_touched where queue = q.name and touched = 1 limit 10000) as g
          cross join millpond_heads as head on head.id = g.id
        )
        where place is not null
      )
    ) end as blocked
  from millpond_limits as q
  where :queue is null or name = :queue
)
select json_object(
  'queue', name, 'paused', json(iif(paused, 'true', 'false')), 'capacity', capacity,
  'overrides', json(ifnull(operator, '{}')), 'lastClaim', max(0, :now - heard_at),
  'counts', json((select json_group_object(name, count) from millpond_counts where queue = queue.name and kind = 'state')),
  'totals', json((select json_group_object(name, count) from millpond_counts where queue = queue.name and kind = 'total')),
  'oldestWaiting', cast(max(0, :now - oldest) as integer), 'limits', json(limits), 'nextStart', cast(max(0, start_at - :now) as integer),
  'groupsAtLimit', ifnull(blocked ->> 'atLimit', 0), 'groupsHeld', ifnull(blocked ->> 'held', 0)
) as stats
from queue
order by name

-- @statement histograms
-- Merged over the minutes.
select json_object('queue', queue, 'priority', priority, 'metric', metric, 'buckets', json_group_object(bucket, count)) as slice
from (
  select queue, priority, metric, bucket, sum(count) as count
  from millpond_histograms
  where minute > cast(:now / 60000 as integer) - :minutes and (:queue is null or queue = :queue)
  group by queue, priority, metric, bucket
)
group by queue, priority, metric
order by queue, priority, metric
