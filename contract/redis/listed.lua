-- @include common.lua
-- listed: the partition's queue is in the list of queues, so that `push` need not see to that any more.
-- KEYS: queue jobs
-- Head: partitions: how many the queue has.
-- In:  nothing.
-- Out: nothing.
-- Invariant: of a partition that was removed meanwhile nothing is made.

local K = keys_of('queue jobs')
-- The job is stored, so a server without room must not refuse this.
may_write(K)
if redis.call('EXISTS', K.jobs) == 1 or redis.call('HEXISTS', K.queue, 'set') == 1 then
  redis.call('HSET', K.queue, 'listed', text(HEAD[6]))
  redis.call('PERSIST', K.queue)
end
return {}
