-- fired: the jobs of firings are pushed. It includes nothing.
-- KEYS: firings
-- In:  the ids of their first jobs.
-- Out: how many of them were not told of yet.

return { redis.call('HDEL', KEYS[1], unpack(ARGV)) }
