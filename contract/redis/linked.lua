-- @include common.lua
-- linked: which jobs of this partition have a parent. A link stays with the parent until that goes, even if the child never came or is
-- gone.
-- KEYS: queue parents
-- Head: nothing further.
-- In:  per link 32 bytes: the child, the parent.
-- Out: per link, 1 or 0.
-- Invariant: changes nothing.

local IDS = 21 -- where the ids begin: common.lua
local out = {}
for at = 1, #ARGV[3], 32 do
  local value, parent = redis.call('HGET', KEYS[2], string.sub(ARGV[3], at, at + 15)) or '', string.sub(ARGV[3], at + 16, at + 31)
  local found = string.find(value, parent, IDS, true)
  while found and (found - IDS) % 16 ~= 0 do found = string.find(value, parent, found + 1, true) end
  out[#out + 1] = found and 1 or 0
end
return out
