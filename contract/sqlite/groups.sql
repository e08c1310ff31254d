-- groups: the groups of a grouped queue that have waiting or running jobs or limits of their own, by name, a page at a time.
-- In:  queue, limit; after: the last name of the page before, null: the first page; group: only this one, or null.
-- Out: name, limits as JSON, running, waiting up to 10,000; start_at: from when it may start its first job, null: as many run as may, or none waits.
-- Invariant: only the groups of the page are counted.

-- @statement list
select name, limits, running, start_at,
  (
    select count(*) from (
      select 1 from millpond_lines where group_id = head.id limit 10000
    )
  ) as waiting
from millpond_heads as head
where queue = :queue and (:after is null or name > :after) and (:group is null or name = :group)
  and (place is not null or running > 0 or limits is not null)
order by name
limit :limit
