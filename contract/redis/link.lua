-- @include common.lua
-- @include jobs.lua
-- @include links.lua
-- @include undecided.lua
-- link: jobs of this partition have children elsewhere, which wait for them already.
-- KEYS: queue jobs states parents children ended graphs staged @ends
-- Head: parts: of each link, the part of the child.
-- In:  the links, one after the other: parent, child; the id of the caller's graph, or nothing.
-- Out: per link, 0, or -1: the parent is unknown, and nothing was done; or, of a parent whose graph is not decided, `held`, as of `push`,
--      and nothing was done. Then links: those whose parent has ended are among them.
-- Invariant: a parent that ends later finds the link.

local K = keys_of('queue jobs states parents children ended graphs staged @ends')
local FINAL = { done = DONE, dead = DEAD, cancelled = CANCELLED }
local out, adding, parted = {}, {}, {}

for i, part in ipairs(HEAD[6]) do
  local link = string.sub(ARGV[3], i * 32 - 31, i * 32) .. part
  local parent = string.sub(link, 1, 16)
  local packed = redis.call('HGET', K.states, parent)
  if not packed and redis.call('HEXISTS', K.jobs, parent) == 0 then
    out[i] = -1
  else
    out[i] = undecided(K, parent, ARGV[4]) or 0
  end
  if out[i] == 0 then
    local ended = packed and FINAL[cmsgpack.unpack(packed)[1]]
    if ended then
      add_ended(K, link, ended)
    elseif not parted[parent] then
      parted[parent] = true
      part_ended(K, parent)
    end
    adding[parent] = (adding[parent] or '') .. link_entry(string.sub(link, 17, 32), part)
  end
end
add_links(K, adding)
return with_links(K, out)
