-- @include common.lua
-- schedules: the schedules by name.
-- Head: limit; after, a name, or nil for the first; name, or nil for all.
-- In:  nothing.
-- Out: [now, more, name, value…]: two items per schedule, the second as the hash has it. more: 1 if the values were too large for one
--      answer, so that the list goes on behind the last name.
-- Invariant: it changes nothing.

local LARGE = 4194304 -- bytes in one answer, about
local limit, after, name = HEAD[5], HEAD[6] or '', HEAD[7]
local out, names, bytes = { NOW, 0 }, { name }, 0
if not name then names = redis.call('ZRANGEBYLEX', K.scheduleNames, after == '' and '-' or '(' .. after, '+', 'LIMIT', 0, limit)
elseif name <= after then names = {} end
for _, each in ipairs(names) do
  if bytes >= LARGE then
    out[2] = 1
    break
  end
  local kept = redis.call('HGET', K.schedules, each)
  if kept then
    bytes = bytes + #kept
    out[#out + 1], out[#out + 2] = each, kept
  end
end
return out
