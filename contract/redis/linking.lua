-- @include common.lua
-- @include links.lua
-- linking: which jobs of this partition have a child. A link stays with the child even if the parent is gone, and another job has its id.
-- KEYS: queue parents children ended @ends
-- Head: nothing further.
-- In:  per link 32 bytes: the parent, the child.
-- Out: per link, 1 or 0.
-- Invariant: changes nothing.

local K = keys_of('queue parents children ended @ends')
local out = {}
for at = 1, #ARGV[3], 32 do
  local child, found = string.sub(ARGV[3], at + 16, at + 31), 0
  for _, link in ipairs((links_of(K, string.sub(ARGV[3], at, at + 15), nil, math.huge))) do
    if string.sub(link, 1, 16) == child then found = 1 end
  end
  out[#out + 1] = found
end
return out
