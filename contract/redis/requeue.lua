-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- requeue: dead or cancelled jobs get another life.
-- KEYS: queue jobs states keys pages waiting dead cancelled lines touched
-- Head: limit: up to so many dead ones, longest dead first; from: how many of those to pass over; until: only those that were dead at this
--       time, nil: all. With items, 0 and 0.
-- In:  ids of the jobs.
-- Out: [how many came back, how many were looked at and stay, now].
-- Invariant: place, fence and last error are kept; the attempts begin anew. One whose key a live job has stays as it is. Looks at `limit` jobs at most.

local K = keys_of('queue jobs states keys pages waiting dead cancelled lines touched')
GROUPED = redis.call('HGET', K.queue, 'limits') == 'groups'
local limit, from, until_time = HEAD[6], HEAD[7], HEAD[8]
local stayed = 0

local function requeue(id)
  local state = state_of(K, id)
  if not state or (state[1] ~= 'dead' and state[1] ~= 'cancelled') then return end
  local list = facts(redis.call('HGET', K.jobs, id))
  local key, due = list[7], state[4] > 0 and state[4] or list[2]
  -- Those that came back since then and died again were due no sooner.
  if until_time and state[6] == until_time and due >= until_time or key and redis.call('HEXISTS', K.keys, key) == 1 then
    stayed = stayed + 1
    return
  end
  redis.call('ZREM', state[1] == 'dead' and K.dead or K.cancelled, id)
  if key then redis.call('HSET', K.keys, key, id) end
  put_state(K, id, 'waiting', state[2], 0, NOW, 0, 0, false)
  enter(list[3], list[1], id, list[5], list[9])
end

if limit == 0 then
  for i = 3, #ARGV do requeue(ARGV[i]) end
else
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', K.dead, '-inf', until_time and text(until_time) or '+inf', 'LIMIT', from, limit)) do requeue(id) end
end
if entering_count > 0 then
  entered(K)
  wake(K)
end
return { entering_count, stayed, NOW }
