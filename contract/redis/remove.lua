-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- remove: jobs go, as if they had never been pushed.
-- KEYS: queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors lines slots
--      groups blocked touched @due @ends
-- Head: state, limit: up to so many jobs of this state, in the order of `list`. nil: those of the ids.
-- In:  ids, or nothing.
-- Out: per job, 0: unknown here; 1: it was finished, 2: it waited or was scheduled, 3: it ran. None of the last ones if the jobs are large:
--      send those again.
-- Invariant: jobs of the same ids may be pushed again: their fences are above those that were given out.

local K = keys_of(
  'queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors '
    .. 'lines slots groups blocked touched @due @ends')
local FINAL = { done = true, dead = true, cancelled = true }
local wanted, limit = HEAD[6], HEAD[7]
local outcomes, gone, is_gone, highest = {}, {}, {}, 0
local _, limits = keep(K, false)
local keyed = redis.call('EXISTS', K.keys) == 1

local function remove(id)
  if is_gone[id] or redis.call('HEXISTS', K.jobs, id) == 0 then return 0 end
  local state = state_of(K, id) or NEW_STATE
  may_write(K)
  highest = math.max(highest, state[2])
  local outcome = 1
  if FINAL[state[1]] then
    redis.call('ZREM', K[state[1]], id)
    if keyed then forget_key(K, id, facts_of(K, id)) end
  else outcome = stop(K, id, state[1], facts_of(K, id)) and 3 or 2 end
  gone[#gone + 1], is_gone[id] = id, true
  return outcome
end

local function first()
  if wanted == 'waiting' then return first_waiting(K, 0, limit) end
  return redis.call(FINAL[wanted] and 'ZREVRANGE' or 'ZRANGE', K[wanted], 0, limit - 1)
end

local ids = {}
if wanted then ids = first() else for i = 3, #ARGV do ids[i - 2] = ARGV[i] end end
for i = 1, #ids do
  if read_bytes >= LARGE then break end
  outcomes[i] = remove(ids[i])
end
forget(K, gone)
stopped_all(K, limits)
local run = redis.call('HGET', K.queue, 'run')
if run and highest > tonumber(string.sub(run, 33)) then
  redis.call('HSET', K.queue, 'run', string.sub(run, 1, 32) .. text(highest))
end
return outcomes
