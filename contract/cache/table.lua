-- table: the list of record structures, begun where there is none.
-- KEYS: structures
-- In:  an id for a new list.
-- Out: the list: its id, then a JSON array of names for each structure.

if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('RPUSH', KEYS[1], ARGV[1]) end
return redis.call('LRANGE', KEYS[1], 0, -1)
