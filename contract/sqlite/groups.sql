-- groups: the groups of a grouped queue that have waiting or running jobs or limits of their own, by name, a page at a time.
-- In:  queue, now, limit; after: the last name of the page before, null: the first page; group: only this one, or null.
-- Out: per group `record`, JSON with the names and shapes of contract/operations.md; waiting up to 10,000.
-- Invariant: only the groups of the page are counted.

-- @statement list
select json_object(
  'group', name, 'limits', json(limits), 'running', running,
  'waiting', (
    select count(*) from (
      select 1 from millpond_jobs indexed by millpond_waiting where queue = :queue and line = head.id and state = 'waiting' limit 10000
    )
  ),
  'nextStart', cast(max(0, start_at - :now) as integer)
) as record
from (
  select *,
    case when is_free then max(
      min(paused_until, :now + pause_length), ifnull((min("full", cast(:now as integer) * 1000 + full_span) - credit + 999) / 1000, 0)
    ) end as start_at
  from millpond_heads
) as head
where queue = :queue and (:after is null or name > :after) and (:group is null or name = :group)
  and (place is not null or running > 0 or limits is not null)
order by name
limit :limit
