-- @include common.lua
-- queues: the names of all queues.
-- Head: nothing further.
-- In:  nothing.
-- Out: the names.

return redis.call('SMEMBERS', K.queues)
