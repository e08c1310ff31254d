-- @include common.lua
-- unregister: a queue that nobody uses goes from the list of queues.
-- KEYS: queues floor
-- In:  [now, bell, name, partitions, token, step]. token: a text that nobody else has, without spaces.
-- Out: of step 0 the floor, or false: there is no such queue, or it has another number of partitions. Of the others nothing.
--
--   listed ──step 0──► listed, with the token ──step 1, if all partitions could be removed (`remove`)──► gone
--      ▲                           └──step 2, if not──┐
--      └── `register`, at any time ◄──────────────────┘
--
-- Invariant: a partition that has a job or a setting is of a queue in the list. Whoever finds the partition new (`push`, `configure`) registers
--      the queue after that, and so either before step 1, which then does nothing, or after it. Whoever dies between the steps leaves the token,
--      which means nothing to anybody else.
-- The floor is above all fences that were given out, so that none is given out again in a queue that comes back.

local QUEUES, FLOOR = KEYS[1], KEYS[2]
local input = cmsgpack.unpack(ARGV[1])
local name, partitions, marked = input[3], string.format('%.0f', input[4]), string.format('%.0f %s', input[4], input[5])
local kept = redis.call('HGET', QUEUES, name)
if input[6] == 0 then
  if not kept or string.match(kept, '^%d+') ~= partitions then return '\194' end
  local time = redis.call('TIME')
  local floor = math.max(tonumber(redis.call('GET', FLOOR) or 0), time[1] * 10000 + math.floor(time[2] / 100))
  redis.call('SET', FLOOR, string.format('%.0f', floor))
  redis.call('HSET', QUEUES, name, marked)
  return cmsgpack.pack(floor)
end
if kept ~= marked then return '' end
if input[6] == 1 then redis.call('HDEL', QUEUES, name) else redis.call('HSET', QUEUES, name, partitions) end
return ''
