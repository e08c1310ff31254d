-- @include common.lua
-- configure: changes a queue's settings.
-- KEYS: queue
-- In:  [now, bell, settings], two items per setting: name (capacity, keepDone, keepDead, paused), value; capacity false: without limit.
-- Out: nothing; or nil: the partition is not listed. Register the queue once more, and then call `listed`.
-- Invariant: what is not given stays. Not called where nothing is given: a name alone makes no queue.

local QUEUE = KEYS[1]
local input = cmsgpack.unpack(ARGV[1])
local bell, settings = input[2], input[3]
for i = 1, #settings, 2 do
  local name, value = settings[i], settings[i + 1]
  if name == 'paused' then
    redis.call('HSET', QUEUE, name, value and 1 or 0)
    if not value then ring(bell, 'work') end
  elseif value then
    redis.call('HSET', QUEUE, name, value)
  else
    redis.call('HDEL', QUEUE, name)
  end
  if name == 'capacity' then ring(bell, 'room') end
end
redis.call('PERSIST', QUEUE)
return redis.call('HEXISTS', QUEUE, 'listed') == 1 and '' or NIL
