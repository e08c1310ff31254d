-- @include common.lua
-- @include jobs.lua
-- requeue: dead or cancelled jobs get another life.
-- KEYS: queue jobs states keys returned dead cancelled
-- In:  [now, bell, ids (or false), limit]: these, or up to `limit` dead ones, longest dead first.
-- Out: how many.
-- Invariant: place, fence and last error are kept; the attempts begin anew. One whose key a live job has stays as it is.

local K = {
  queue = KEYS[1], jobs = KEYS[2], states = KEYS[3], keys = KEYS[4], returned = KEYS[5], dead = KEYS[6], cancelled = KEYS[7],
}
local input = cmsgpack.unpack(ARGV[1])
local now, bell, ids, limit = clock(input[1]), input[2], input[3], input[4]
local count = 0

local function requeue(id)
  local state = redis.call('HGET', K.states, id)
  local letter, flags, fence
  if state then letter, flags, fence = decode(state) end
  if letter ~= 'x' and letter ~= 'c' then return end
  local place, _, priority, _, key = facts(record_of(K, id))
  if key and redis.call('HEXISTS', K.keys, key) == 1 then return end
  redis.call('ZREM', letter == 'x' and K.dead or K.cancelled, id)
  if key then redis.call('HSET', K.keys, key, id) end
  redis.call('HSET', K.states, id, encode('w', flags, fence, 0, now, 0, 0, ''))
  redis.call('ZADD', K.returned, score(priority, place), id)
  count = count + 1
end

if ids then
  for i = 1, #ids do requeue(ids[i]) end
else
  -- Those whose key is taken are passed over, so that they cannot fill the limit and hide others for ever.
  local passed = 0
  while count < limit do
    local some = redis.call('ZRANGE', K.dead, passed, passed + math.min(limit - count, 1000) - 1)
    if #some == 0 then break end
    local before = count
    for i = 1, #some do requeue(some[i]) end
    passed = passed + #some - (count - before)
  end
end
if count > 0 then woken(K, bell, now) end
return cmsgpack.pack(count)
