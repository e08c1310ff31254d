-- @include scheduled.lua
-- schedules: the schedules by name.
-- KEYS: schedules scheduleNames
-- In:  now, or nothing for the server's time; limit; after, a name, or nothing for the first; name, or nothing for all.
-- Out: [now, name, value…]: two items per schedule, the second as the hash has it.
-- Invariant: it changes nothing.

local now, limit, after, name = now_of(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local out, names = { now }, { name }
if name == '' then
  names = redis.call('ZRANGEBYLEX', KEYS[2], after == '' and '-' or '(' .. after, '+', 'LIMIT', 0, limit)
elseif name <= after then names = {} end
for _, each in ipairs(names) do
  local kept = redis.call('HGET', KEYS[1], each)
  if kept then out[#out + 1], out[#out + 2] = each, kept end
end
return out
