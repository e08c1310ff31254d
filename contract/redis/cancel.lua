-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include graph.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- @include settle.lua
-- cancel: jobs are not wanted any more.
-- Head: nothing further.
-- In:  ids.
-- Out: per id, -1: unknown; 0: done, 1: dead, 2: cancelled already; else a list [how, queue]: 3: cancelled while it waited, was scheduled
--      or
--      blocked, 4: while it ran. None of the last ones if the jobs are large: send those again.
-- Invariant: final states do not change. The fence stays, so the worker's next operation on the job is stale.

local FINAL = { done = 0, dead = 1, cancelled = 2 }
local outcomes = {}

local function cancel(id)
  local state = state_of(id) or NEW_STATE
  if FINAL[state[1]] then return FINAL[state[1]] end
  local record = visit(id)
  if not record then return -1 end
  return { cancel_one(id, state, (facts(record))) and 4 or 3, QUEUE }
end

for i = 3, #ARGV do
  if read_bytes >= LARGE then break end
  outcomes[i - 2] = cancel(ARGV[i])
end
settle()
flush()
return outcomes
