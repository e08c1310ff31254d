-- @include common.lua
-- @include idle.lua
-- remove: a partition of a queue that nobody uses goes, between the steps of `unregister`.
-- KEYS: queue jobs states keys scheduled running returned done dead cancelled results progress errors histograms fresh
-- In:  [now, bell, floor]. floor: as `unregister` gave it.
-- Out: true: nothing is left of it; false: it has a job or a setting, or has given out fences near the floor, and stays.

local K = { queue = KEYS[1], jobs = KEYS[2] }
local floor = cmsgpack.unpack(ARGV[1])[3]
local run = redis.call('HGET', K.queue, 'run') or ''
if not is_idle(K) or (tonumber(string.sub(run, 17)) or 0) + RAISE > floor then return '\194' end
redis.call('UNLINK', unpack(KEYS))
return '\195'
