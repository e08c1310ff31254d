-- release: gives up a lock and tells those who wait for it.
-- KEYS: lock
-- In:  token, channel, message.
-- Out: 1: released, 0: the lock was not the token's.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1
