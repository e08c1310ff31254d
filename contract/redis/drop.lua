-- @include common.lua
-- drop: a partition of a queue that is removed goes, between the steps of `unregister`.
-- KEYS: queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors claims histograms limits
--       lines slots groups names touched tickets held blocked unused remembered awaiting parents children ended graphs staged @due
--      @ends
-- Head: floor: as `unregister` gave it; nil: only look whether something is there.
-- In:  nothing.
-- Out: [1]: nothing is there; [0]: it has jobs, or links that are to be settled; [2, floor]: `unregister` is to raise the floor to this
--      number first; [3], with nil: it has
--      settings. Where some partitions have settings and others nothing, whoever gave them and whoever removed the queue met: remove it
--      again.

local NAMES = 'queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors claims histograms limits '
  .. 'lines slots groups names touched tickets held blocked unused remembered awaiting parents children ended graphs staged '
  .. '@due @ends'
local K = keys_of(NAMES)
local floor = HEAD[6]
if redis.call('EXISTS', K.jobs, K.ended, K.staged) > 0 then return { 0 } end
if not floor then return { redis.call('HEXISTS', K.queue, 'set') == 1 and 3 or 1 } end
local own = tonumber(string.sub(redis.call('HGET', K.queue, 'run') or '', 33)) or 0
-- Where the clock was set back: more than what this run of the server may have given out since then.
if own > floor then return { 2, text(own + 100000) } end
local marks = redis.call('HMGET', K.queue, 'asleep', 'asleepBy')
redis.call('UNLINK', unpack(KEYS, 1, #KEYS - 2))
-- Whoever sleeps is told of the first job of a queue that has its name.
if recent(marks[1]) then
  redis.call('HSET', K.queue, 'asleep', marks[1], 'asleepBy', marks[2])
  redis.call('PEXPIRE', K.queue, 2 * RECENT)
end
redis.call('ZREM', K['@due'], PART)
redis.call('ZREM', K['@ends'], PART)
return { 1 }
