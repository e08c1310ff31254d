-- append: adds to the list of record structures, if nobody was faster.
-- KEYS: structures
-- In:  the list's id, how many structures the caller knows, the new ones.
-- Out: 1: appended; 0: it is another list, or a longer one.

if redis.call('LINDEX', KEYS[1], 0) ~= ARGV[1] or redis.call('LLEN', KEYS[1]) - 1 ~= tonumber(ARGV[2]) then return 0 end
for i = 3, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[i]) end
return 1
