-- @include common.lua
-- register: a queue is to be in the list of queues. Its keys are the list's own: {PREFIX}:queues and {PREFIX}:floor.
-- KEYS: queues floor
-- In:  [now, bell, name, partitions]
-- Out: [partitions, floor]. partitions: how many the queue has, which whoever registers it first decides. floor: for `push`.
-- Invariant: whoever is about to remove the queue (`unregister`) leaves it in the list then.

local QUEUES, FLOOR = KEYS[1], KEYS[2]
local input = cmsgpack.unpack(ARGV[1])
local name = input[3]
local kept = redis.call('HGET', QUEUES, name)
local partitions = kept and string.match(kept, '^%d+') or string.format('%.0f', input[4])
if kept ~= partitions then redis.call('HSET', QUEUES, name, partitions) end
return list_of(2) .. cmsgpack.pack(tonumber(partitions)) .. cmsgpack.pack(tonumber(redis.call('GET', FLOOR) or 0))
