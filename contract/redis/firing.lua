-- @include scheduled.lua
-- firing: decides which firings take place. It is the first of three steps: then `fire` pushes the jobs into the queue's partitions, and
-- `fired` tells that it has. A process that ends in between has fired all the same: a sweep does the rest.
-- KEYS: schedules nextFirings firings
-- In:  MessagePack of [now, items]; then two texts per item: the id of the first job, and all jobs as README.md has them under "fire"; both
--      empty where there are none. items: a list of lists [name, version, expected, next], next false: never again. now: nil for the
--      server's time.
-- Out: [now, since, decided…]: when the oldest firing was decided that is not forgotten yet; 1, or 0 where the firing is stale.
-- Invariant: of the calls that expect the same time, one is told 1.

local K = { schedules = KEYS[1], next = KEYS[2], firings = KEYS[3] }
local head = cmsgpack.unpack(ARGV[1])
local now = now_of(head[1])
local out = { now, since_of(K.firings, now) }
for i, item in ipairs(head[2]) do
  local name, id = item[1], ARGV[i * 2]
  local list, job = schedule_of(K.schedules, name)
  local is_at = list and not list[PAUSED] and list[VERSION] == item[2] and list[NEXT] == item[3]
  out[i + 2] = is_at and 1 or 0
  if is_at then
    list[PLANNED], list[NEXT] = true, item[4]
    if id ~= '' then
      list[LAST] = now
      redis.call('HSET', K.firings, id, cmsgpack.pack({ now }) .. ARGV[i * 2 + 1])
    end
    put_schedule(K, name, list, job)
  end
end
return out
