-- @include common.lua
-- remove-schedule: a schedule goes.
-- Head: name.
-- In:  nothing.
-- Out: [known]: 1, or 0 where there is no such schedule.

redis.call('ZREM', K.scheduleNames, HEAD[5])
redis.call('ZREM', K.nextFirings, HEAD[5])
return { redis.call('HDEL', K.schedules, HEAD[5]) }
