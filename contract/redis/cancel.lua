-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include endings.lua
-- cancel: jobs are not wanted any more.
-- KEYS: queue jobs states keys scheduled running pages waiting cancelled results progress errors lines slots groups touched @due @ends
-- Head: nothing further.
-- In:  ids.
-- Out: per id, -1: unknown here; 0: done, 1: dead, 2: cancelled already; 3: cancelled while it waited or was scheduled, 4: while it ran; none of the last ones if the jobs are large: send
--      those again.
-- Invariant: final states do not change. The fence stays, so the worker's next operation on the job is stale.

local K = keys_of(
  'queue jobs states keys scheduled running pages waiting cancelled results progress errors lines slots groups touched @due @ends')
local FINAL = { done = 0, dead = 1, cancelled = 2 }
local outcomes, ended, stopped, room = {}, {}, {}, false
local kept, limits = keep(K, false)

local function cancel(id)
  if redis.call('HEXISTS', K.jobs, id) == 0 then return -1 end
  local state = state_of(K, id) or { 'waiting', 0, 0, 0, 0, 0, false }
  if FINAL[state[1]] then return FINAL[state[1]] end
  local list = facts_of(K, id)
  may_write(K)
  unkey(K, id, list)
  if state[1] == 'scheduled' then redis.call('ZREM', K.scheduled, id)
  elseif state[1] == 'running' then
    redis.call('ZREM', K.running, id)
    if GROUPED then free_slot(list[5]) end
  else leave(K, list[3], list[1], id, list[5], list[9]) end
  ended[#ended + 1] = id
  if kept == 0 then
    forget(K, { id })
  else
    put_state(K, id, 'cancelled', state[2], state[3], state[4], state[5], NOW, state[7])
    redis.call('ZADD', K.cancelled, NOW, id)
  end
  if state[1] == 'running' then
    stopped[#stopped + 1] = id
    return 4
  end
  room = true
  return 3
end

for i = 3, #ARGV do
  if read_bytes >= LARGE then break end
  outcomes[i - 2] = cancel(ARGV[i])
end
if GROUPED then freed_slots(K) end
if #ended > 0 and kept > 0 then note_end(K, NOW + kept) end
if room then note_due(K) end
if #stopped > 0 then ring('cancelled', stopped) end
-- A job that waited may have been the one that a rate or a limit held, and others behind it.
if limits and #ended > 0 then freed_bell(K) end
if room then roomy(K) end
finished_bell(K, ended)
return outcomes
