-- @include common.lua
-- given: what code and an operator have given of a queue's settings. Called on the first partition.
-- KEYS: queue
-- Head: nothing further.
-- In:  nothing.
-- Out: [code, operator], as configure.lua has them, empty for nothing; nothing at all where there is no such queue.

local K = keys_of('queue')
if redis.call('EXISTS', K.queue) == 0 then return {} end
local kept = redis.call('HMGET', K.queue, 'code', 'operator')
return { kept[1] or '', kept[2] or '' }
