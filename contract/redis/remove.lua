-- @include common.lua
-- @include idle.lua
-- remove: a partition of a queue that nobody uses goes, between the steps of `unregister`.
-- KEYS: queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors claims histograms limits @due @ends
-- Head: floor: as `unregister` gave it.
-- In:  nothing.
-- A grouped queue is never removed.
-- Out: [1]: nothing is left of it; [0]: it has a job or a setting, or is not idle for so long, or gives out fences above the floor, and stays.

local K = keys_of(
  'queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors claims histograms limits @due @ends')
local kept = redis.call('HMGET', K.queue, 'run', 'idle', 'listed')
local idle_since = tonumber(kept[2])
-- One that is not listed never had a job or a setting.
local used = kept[3] and (not idle_since or NOW - idle_since < IDLE_FOR)
if not is_idle(K) or used or (tonumber(string.sub(kept[1] or '', 33)) or 0) > HEAD[6] then return { 0 } end
redis.call('UNLINK', unpack(KEYS, 1, #KEYS - 2))
redis.call('ZREM', K['@due'], PART)
redis.call('ZREM', K['@ends'], PART)
return { 1 }
