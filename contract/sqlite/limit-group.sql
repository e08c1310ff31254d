-- limit-group: limits of a group of its own. The queue is a grouped one by then.
-- In:  queue, group; limits as JSON with all of running, rate and weight, in the shapes of contract/operations.md; null: none.
-- Out: nothing.
-- Invariant: the next claim looks at the group.

-- @statement limit
insert into millpond_groups (queue, name, weight, limits, most, rate_step, rate_burst) values (
  :queue, :group, ifnull(:limits ->> 'weight', 1), :limits, :limits ->> 'running',
  ((:limits ->> '$.rate.per') * 1000 + (:limits ->> '$.rate.count') - 1) / (:limits ->> '$.rate.count'),
  ifnull(:limits ->> '$.rate.burst', max(1, (:limits ->> '$.rate.count') * 100 / (:limits ->> '$.rate.per')))
)
on conflict do update set
  weight = excluded.weight, limits = excluded.limits, most = excluded.most,
  rate_step = excluded.rate_step, rate_burst = excluded.rate_burst,
  touched = 1
