-- @include common.lua
-- @include jobs.lua
-- @include described.lua
-- find: all there is to know about jobs.
-- Head: nothing further.
-- In:  ids.
-- Out: [left, item…]: fourteen items per job that is known, as in described.lua. left: how many of the last ids are left to another call,
--      since jobs are large.
-- Invariant: changes no job. Where one is not finished, its queue is marked as watched, for the bell when it is.

local FINAL = { done = true, dead = true, cancelled = true }
local ids, out = {}, { 0 }
for i = 3, #ARGV do ids[i - 2] = ARGV[i] end
out[1] = describe_all(out, ids)

local function watch()
  if Q.is_watched then return end
  Q.is_watched = true
  local mark = redis.call('HGET', K.queue, 'watched')
  if mark and math.abs(NOW - mark) <= 900 then return end
  may_write()
  redis.call('HSET', K.queue, 'watched', NOW)
end

for i = 2, #out, 14 do
  if not FINAL[out[i + 1]] then
    at(queue_of(out[i + 11]))
    watch()
  end
end
return out
