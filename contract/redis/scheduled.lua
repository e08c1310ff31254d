-- What the scripts on schedules share. They run on the keys of the whole store, {PREFIX}:schedules and the others:
--   schedules  HASH name → MessagePack of [version, when, tz, missed, jitter, from, until, paused, planned, nextAt, changedAt, seenAt,
--              lastAt, former], absent times false, then the job: MessagePack of [queue, priority, key, group, cost, attempts, timeout],
--              then its encoded data. seenAt: when it was last declared. former: the versions that were replaced, the latest first.
--   scheduleNames  ZSET of the names, all of score 0
--   nextFirings  ZSET of names by `nextAt`; none that is paused or never fires again
--   firings    HASH id of the first job → a firing that is decided, of which the jobs may not be pushed yet: MessagePack of [decided], then
--              what the client gave

local VERSION, WHEN, TZ, MISSED, JITTER, FROM, UNTIL, PAUSED, PLANNED, NEXT, CHANGED, SEEN, LAST, FORMER =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14

local function text(number) return string.format('%.17g', number) end

local function now_of(given)
  local now = tonumber(given)
  if now then return now end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- @return when the oldest firing was decided that is not forgotten yet; now: there is none
local function since_of(firings, now)
  for _, firing in ipairs(redis.call('HVALS', firings)) do
    local _, list = cmsgpack.unpack_one(firing)
    now = math.min(now, list[1])
  end
  return now
end

-- @return the list of a schedule, and its job; nil: there is none
local function schedule_of(key, name)
  local kept = redis.call('HGET', key, name)
  if not kept then return nil end
  local after, list = cmsgpack.unpack_one(kept)
  return list, after == -1 and '' or string.sub(kept, after + 1)
end

local function put_schedule(K, name, list, job)
  redis.call('HSET', K.schedules, name, cmsgpack.pack(list) .. job)
  if list[PAUSED] or not list[NEXT] then redis.call('ZREM', K.next, name)
  else redis.call('ZADD', K.next, text(list[NEXT]), name) end
end
