-- @include common.lua
-- listed: the partition's queue is in the list of queues, so that `push` need not see to that any more.
-- KEYS: queue
-- In:  [now, bell]
-- Out: nothing.
-- Invariant: of a partition that was removed meanwhile nothing is made.

local QUEUE = KEYS[1]
local known = redis.call('HMGET', QUEUE, 'place', 'capacity', 'keepDone', 'keepDead', 'paused')
if known[1] or known[2] or known[3] or known[4] or known[5] then
  redis.call('HSET', QUEUE, 'listed', 1)
  redis.call('PERSIST', QUEUE)
end
return ''
