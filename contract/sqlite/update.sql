-- update: a blocked, scheduled or waiting job is changed.
-- In:  id, now; state, as `look` told; encoding and data, or both null; priority or null; due_at, never before now, or null.
-- Out: `look` gives its state; no row: unknown. Run the others if it is blocked, scheduled or waiting. `change` gives the new
--      state.
-- Invariant: it keeps its place, and a blocked one stays blocked. Some drivers bind bytes of length 0 as null, hence the coalesce.

-- @statement look
select queue, state, due_at, follow_due, line from millpond_jobs where id = :id

-- @statement leave
-- Of a waiting job with a line, whose priority or due time changes, before `change`: it leaves its line. In a grouped queue, run
-- limits/line_up_groups and limits/line_up after `change`.
update millpond_jobs set state = 'scheduled', line = null where id = :id and state = 'waiting'

-- @statement change
update millpond_jobs set
  state    = case when :due_at is null or :state = 'blocked' then :state when :due_at > :now then 'scheduled' else 'waiting' end,
  priority = ifnull(:priority, priority),
  due_at   = ifnull(:due_at, due_at),
  encoding = ifnull(:encoding, encoding),
  data     = case when :encoding is null then data else coalesce(:data, x'') end
where id = :id
returning state
