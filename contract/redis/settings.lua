-- @include common.lua
-- settings: what code and an operator have given of a queue's settings.
-- Head: nothing further.
-- In:  nothing.
-- Out: [code, operator, paused, grouped]: the first two as configure.lua has them, empty for nothing; the others 0 or 1. Nothing at all
--      where there is no such queue.

if redis.call('HEXISTS', K.queue, 'listed') == 0 then return {} end
local kept = redis.call('HMGET', K.queue, 'code', 'operator', 'paused', 'limits')
return { kept[1] or '', kept[2] or '', kept[3] == '1' and 1 or 0, kept[4] == 'groups' and 1 or 0 }
