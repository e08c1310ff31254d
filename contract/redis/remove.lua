-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include links.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- remove: jobs go, as if they had never been pushed.
-- KEYS: queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors lines slots
--      groups blocked touched awaiting parents children ended graphs @due @ends
-- Head: state, limit: up to so many jobs of this state, in the order of `list`. nil: those of the ids.
-- In:  ids, or nothing.
-- Out: per job, 0: unknown here; 1: it was finished, 2: it waited, was scheduled or blocked, 3: it ran. None of the last ones if the jobs
--      are large: send those again. Then links.
-- Invariant: jobs of the same ids may be pushed again: their fences are above those that were given out.

local K = keys_of(
  'queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors '
    .. 'lines slots groups blocked touched awaiting parents children ended graphs @due @ends')
local FINAL = { done = true, dead = true, cancelled = true }
local wanted, limit = HEAD[6], HEAD[7]
local outcomes, is_gone = {}, {}
local _, limits = keep(K, false)

local function remove(id)
  if is_gone[id] or redis.call('HEXISTS', K.jobs, id) == 0 then return 0 end
  local state = state_of(K, id) or NEW_STATE
  is_gone[id] = true
  return remove_one(K, id, state, function() return facts_of(K, id) end)
end

local function first()
  if wanted == 'waiting' then return first_waiting(K, 0, limit) end
  return redis.call(FINAL[wanted] and 'ZREVRANGE' or 'ZRANGE', set_of(K, wanted), 0, limit - 1)
end

local ids = {}
if wanted then ids = first() else for i = 3, #ARGV do ids[i - 2] = ARGV[i] end end
for i = 1, #ids do
  if read_bytes >= LARGE then break end
  outcomes[i] = remove(ids[i])
end
removed_all(K, limits)
return with_links(K, outcomes)
