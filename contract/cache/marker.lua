-- marker: the marker of a tag, made where there is none.
-- KEYS: tag
-- In:  a new marker of eight bytes, life in ms.
-- Out: the tag's marker.

local marker = redis.call('TYPE', KEYS[1]).ok == 'string' and redis.call('GET', KEYS[1]) or ''
if #marker ~= 8 then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return ARGV[1]
end
-- Not each time: every change is told to every process.
if redis.call('PTTL', KEYS[1]) < ARGV[2] / 2 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return marker
