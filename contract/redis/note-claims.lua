-- @include common.lua
-- note-claims: a worker claims from the queue now. Called on the first partition, once in a while.
-- KEYS: queue jobs
-- Head: nothing further.
-- In:  nothing.
-- Out: [known]: 0: there is no such queue.
-- Invariant: of a queue that is not there nothing is made.

local K = keys_of('queue jobs')
if redis.call('EXISTS', K.queue) == 0 then return { 0 } end
redis.call('HSET', K.queue, 'claimed', NOW)
return { 1 }
