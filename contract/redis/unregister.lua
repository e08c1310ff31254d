-- unregister: a queue that nobody uses goes from the list of queues.
-- KEYS: queues floor
-- In:  name, partitions, token, step. token: a text that nobody else has, without spaces.
-- Out: of step 0 [the floor as text], or nothing: there is no such queue, or it has another number of partitions. Of the others nothing.
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
local name, partitions, marked, step = ARGV[1], ARGV[2], ARGV[2] .. ' ' .. ARGV[3], ARGV[4]
local kept = redis.call('HGET', QUEUES, name)
if step == '0' then
  if not kept or string.match(kept, '^%d+') ~= partitions then return {} end
  local time = redis.call('TIME')
  local floor = math.max(tonumber(redis.call('GET', FLOOR) or 0), time[1] * 10000 + math.floor(time[2] / 100))
  redis.call('SET', FLOOR, string.format('%.0f', floor))
  redis.call('HSET', QUEUES, name, marked)
  return { string.format('%.0f', floor) }
end
if kept ~= marked then return {} end
if step == '1' then redis.call('HDEL', QUEUES, name) else redis.call('HSET', QUEUES, name, partitions) end
return {}
