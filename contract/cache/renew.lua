-- renew: the holder of a lock is still at work.
-- KEYS: lock
-- In:  token, lease in ms.
-- Out: 1: the lock is still the token's, else 0.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
