-- @include common.lua
-- @include jobs.lua
-- release: claims are given back unstarted.
-- KEYS: queue jobs states running returned
-- In:  [now, bell, again, items], two items per claim: id, fence. `again`: the same call may have taken effect before; a job
--      that waits since this very claim is then `ok`.
-- Out: a list with, per claim, 0: ok or 1: stale.
-- Invariant: the attempt does not count, and the job keeps its place; the fence stays raised.

local K = { queue = KEYS[1], jobs = KEYS[2], states = KEYS[3], running = KEYS[4], returned = KEYS[5] }
local input = cmsgpack.unpack(ARGV[1])
local now, bell, again, items = clock(input[1]), input[2], input[3], input[4]
local count = #items / 2
local outcomes, ready = {}, false

for i = 1, count do
  local id, fence = items[i * 2 - 1], items[i * 2]
  local state = redis.call('HGET', K.states, id)
  outcomes[i] = '\1'
  if state then
    local letter, flags, held, attempt, due = decode(state)
    if held == fence and letter == 'r' then
      local place, _, priority = facts(record_of(K, id))
      redis.call('ZREM', K.running, id)
      redis.call('HSET', K.states, id, encode('w', flags, fence, attempt - 1, due, 0, 0, ''))
      redis.call('ZADD', K.returned, score(priority, place), id)
      ready = true
      outcomes[i] = '\0'
    elseif again and held == fence and letter == 'w' then
      outcomes[i] = '\0'
    end
  end
end
if ready then woken(K, bell, now) end
return list_of(count) .. table.concat(outcomes)
