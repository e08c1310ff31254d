-- @include common.lua
-- acquire: takes the lock of a key, to load its value.
-- KEYS: value lock
-- In:  token, lease in ms, version that the caller knows (empty: none), or '*' for any.
-- Out: 0: the lock is ours; -1: there is another value by now; else for how many ms another has the lock.

if ARGV[3] ~= '*' and version(KEYS[1]) ~= ARGV[3] then return -1 end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
local left = redis.call('PTTL', KEYS[2])
-- A key that never expires is nobody's lock. It gets the time of one, after which it is gone.
if left < 0 then
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
  return tonumber(ARGV[2])
end
return math.max(1, left)
