-- unregister: a queue that is removed goes from the list of queues.
-- KEYS: queues floor claimed
-- In:  name, partitions, token, step, least. token: a text that nobody else has, without spaces. least: of step 0, the least floor.
-- Out: of step 0 [the floor as text], or nothing: there is no such queue, or it has another number of partitions. Of step 1 [1]: it is
--      gone, or nothing: somebody has registered it meanwhile. Of step 2 nothing.
--
--   step 0 ──► `drop` all partitions ──► step 0 ──► look at all (`drop`) ──nothing there──► step 1: gone
--                                                     └──something is there──► step 2: it stays
--
-- Invariant: a partition that has a job or a setting is of a queue in the list. Whoever stored something there before `drop` has it
--      removed. Whoever stores it later finds the partition new (`push`, `configure`, `restore`), and registers the queue after that:
--      either before step 1, which then does nothing, or after it. Whoever dies between the steps leaves a token, which means nothing to
--      anybody else.
-- The floor is above all fences that were given out, so that none is given out again in a queue that comes back.

local QUEUES, FLOOR, CLAIMED = KEYS[1], KEYS[2], KEYS[3]
local name, partitions, marked, step = ARGV[1], ARGV[2], ARGV[2] .. ' ' .. ARGV[3], ARGV[4]
local kept = redis.call('HGET', QUEUES, name)
if step == '0' then
  if not kept or string.match(kept, '^%d+') ~= partitions then return {} end
  local time = redis.call('TIME')
  local floor = math.max(tonumber(redis.call('GET', FLOOR) or 0), tonumber(ARGV[5]), time[1] * 10000 + math.floor(time[2] / 100))
  redis.call('SET', FLOOR, string.format('%.0f', floor))
  redis.call('HSET', QUEUES, name, marked)
  return { string.format('%.0f', floor) }
end
if kept ~= marked then return {} end
if step == '2' then
  redis.call('HSET', QUEUES, name, partitions)
  return {}
end
redis.call('HDEL', CLAIMED, name)
redis.call('HDEL', QUEUES, name)
return { 1 }
