-- @include common.lua
-- remove-schedule: a schedule goes.
-- Head: name.
-- In:  nothing.
-- Out: [known]: 1, or 0 where there is no such schedule.

local REMEMBERED = 86400000 -- ms: a process that still declares it does so more often
redis.call('ZREM', K.scheduleNames, HEAD[5])
redis.call('ZADD', K.removedSchedules, text(NOW), HEAD[5])
redis.call('ZREMRANGEBYSCORE', K.removedSchedules, '-inf', text(NOW - REMEMBERED))
redis.call('ZREM', K.nextFirings, HEAD[5])
return { redis.call('HDEL', K.schedules, HEAD[5]) }
