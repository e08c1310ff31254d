-- configure: creates a queue or changes its settings.
-- In:  queue; capacity (applied if set_capacity is 1; null: no limit); keep_done, keep_dead, paused (null: unchanged).
-- Out: nothing.
-- Invariant: what is not given stays. Not run where nothing is given: a queue's name alone makes none.

-- @statement configure
insert into millpond_queues (name, capacity, keep_done, keep_dead, paused)
values (:queue, :capacity, coalesce(:keep_done, 3600000), coalesce(:keep_dead, 604800000), coalesce(:paused, 0))
on conflict (name) do update set
  capacity  = case when :set_capacity = 1 then :capacity else capacity end,
  keep_done = coalesce(:keep_done, keep_done),
  keep_dead = coalesce(:keep_dead, keep_dead),
  paused    = coalesce(:paused, paused)
