-- @include common.lua
-- put: stores a value without a lock. A load of the key that is under way is told that it has lost the lock.
-- KEYS: value lock
-- In:  value, life in ms, prefix of chunks, channel, message.

removeChunks(KEYS[1], ARGV[3])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if redis.call('DEL', KEYS[2]) == 1 then redis.call('PUBLISH', ARGV[4], ARGV[5]) end
return 1
