-- @include common.lua
-- room: how many jobs a partition has room for.
-- KEYS: queue scheduled awaiting
-- Head: nothing further.
-- In:  nothing.
-- Out: [room]; -1: any number.

local settings = redis.call('HMGET', KEYS[1], 'capacity', 'waiting')
if not settings[1] then return { -1 } end
return { math.max(0, settings[1] - (settings[2] or 0) - redis.call('ZCARD', KEYS[2]) - redis.call('ZCARD', KEYS[3])) }
