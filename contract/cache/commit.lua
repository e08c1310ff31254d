-- @include common.lua
-- commit: stores what was loaded under a lock, and releases the lock.
-- KEYS: value lock
-- In:  token, value, life in ms, prefix of chunks.
-- Out: 1: stored; 0: the lock is not the token's, so the value may be older than an invalidation.

if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
removeChunks(KEYS[1], ARGV[4])
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[2])
return 1
