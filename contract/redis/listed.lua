-- @include common.lua
-- listed: the partition's queue is in the list of queues, so that `push` need not see to that any more.
-- KEYS: queue jobs
-- Head: nothing further.
-- In:  nothing.
-- Out: nothing.
-- Invariant: of a partition that was removed meanwhile nothing is made.

local K = keys_of('queue jobs')
if redis.call('EXISTS', K.jobs) == 1 or redis.call('HEXISTS', K.queue, 'set') == 1 then
  redis.call('HSET', K.queue, 'listed', 1)
  redis.call('PERSIST', K.queue)
end
return {}
