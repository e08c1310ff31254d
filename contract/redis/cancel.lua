-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include links.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- cancel: jobs are not wanted any more.
-- KEYS: queue jobs states keys scheduled running pages waiting cancelled results progress errors lines slots groups blocked touched
--      awaiting parents children ended graphs @due @ends
-- Head: nothing further.
-- In:  ids.
-- Out: per id, -1: unknown here; 0: done, 1: dead, 2: cancelled already; 3: cancelled while it waited, was scheduled or blocked, 4: while
--      it
--      ran. None of the last ones if the jobs are large: send those again. Then links.
-- Invariant: final states do not change. The fence stays, so the worker's next operation on the job is stale.

local K = keys_of(
  'queue jobs states keys scheduled running pages waiting cancelled results progress errors '
    .. 'lines slots groups blocked touched awaiting parents children ended graphs @due @ends')
local FINAL = { done = 0, dead = 1, cancelled = 2 }
local outcomes = {}
local kept, limits = keep(K, false)

local function cancel(id)
  if redis.call('HEXISTS', K.jobs, id) == 0 then return -1 end
  local state = state_of(K, id) or NEW_STATE
  if FINAL[state[1]] then return FINAL[state[1]] end
  return cancel_one(K, id, state, facts_of(K, id), kept) and 4 or 3
end

for i = 3, #ARGV do
  if read_bytes >= LARGE then break end
  outcomes[i - 2] = cancel(ARGV[i])
end
cancelled_all(K, kept, limits)
return with_links(K, outcomes)
