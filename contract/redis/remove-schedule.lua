-- remove-schedule: a schedule goes. What was decided of it is still pushed. It includes nothing.
-- KEYS: schedules scheduleNames nextFirings
-- In:  name.
-- Out: [known]: 1, or 0 where there is no such schedule.

redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return { redis.call('HDEL', KEYS[1], ARGV[1]) }
