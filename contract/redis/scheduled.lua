-- What the scripts on schedules share. AS_DECLARED: the place of the version. Keys of the pond:
--   schedules  HASH name → MessagePack of [version, when, tz, missed, jitter, from, until, paused, planned, nextAt, changedAt, seenAt,
--              lastAt, former], absent times false, then the job: MessagePack of [queue, priority, key, group, cost, attempts, timeout],
--              then its encoded data. seenAt: when it was last declared. former: the versions that were replaced, the latest first.
--   scheduleNames  ZSET of the names, all of score 0
--   nextFirings  ZSET of names by `nextAt`; none that is paused or never fires again
--   removedSchedules  ZSET of the names of those that were removed, by when, or by when a process last declared it again: for a day

local AS_DECLARED, WHEN, TZ, MISSED, JITTER, FROM, UNTIL, PAUSED, PLANNED, NEXT, CHANGED, SEEN, LAST, FORMER =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14

-- @return the list of a schedule, and its job; nil: there is none
local function schedule_of(name)
  local kept = redis.call('HGET', K.schedules, name)
  if not kept then return nil end
  local after, list = cmsgpack.unpack_one(kept)
  return list, after == -1 and '' or string.sub(kept, after + 1)
end

local function put_schedule(name, list, job)
  redis.call('HSET', K.schedules, name, cmsgpack.pack(list) .. job)
  if list[PAUSED] or not list[NEXT] then redis.call('ZREM', K.nextFirings, name)
  else redis.call('ZADD', K.nextFirings, text(list[NEXT]), name) end
end
