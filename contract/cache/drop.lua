-- @include common.lua
-- drop: removes a value and the lock of its key.
-- KEYS: value lock
-- In:  prefix of chunks, channel, message, token (empty: whoever holds the lock).
-- Out: 1: there was a value, 0: there was none; -1: nothing was removed, since the lock is not the token's.

if ARGV[4] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[4] then return -1 end
removeChunks(KEYS[1], ARGV[1])
if redis.call('DEL', KEYS[2]) == 1 then redis.call('PUBLISH', ARGV[2], ARGV[3]) end
return redis.call('DEL', KEYS[1])
