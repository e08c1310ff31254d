-- @include common.lua
-- @include described.lua
-- find: all there is to know about jobs.
-- KEYS: queue jobs states running results progress errors parents
-- Head: nothing further.
-- In:  ids.
-- Out: [left, item…]: fourteen items per job that is known here, as in described.lua. left: how many of the last ids are left to another
--      call, since jobs are large.
-- Invariant: changes no job. Where one is not finished, the queue is marked as watched, for the bell when it is.

local K = keys_of('queue jobs states running results progress errors parents')
local ids, out, live = {}, { 0 }, false
for i = 3, #ARGV do ids[i - 2] = ARGV[i] end
out[1] = describe_all(K, out, ids)

local FINAL = { done = true, dead = true, cancelled = true }
for i = 3, #out, 14 do
  if not FINAL[out[i]] then live = true end
end
if live then
  local mark = redis.call('HGET', K.queue, 'watched')
  if not mark or math.abs(NOW - mark) > 900 then
    may_write(K)
    redis.call('HSET', K.queue, 'watched', NOW)
  end
end
return out
