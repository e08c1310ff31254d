-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include links.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- @include parents.lua
-- settle: parents of jobs of this partition have ended.
-- KEYS: queue jobs states keys scheduled running pages waiting cancelled results progress errors lines slots groups
--      blocked touched awaiting parents children ended graphs @due @ends
-- Head: nothing further.
-- In:  per link 33 bytes: the child, the parent, and a digit, as in `ended`. Those of a child one after the other: its parents are read and
--      written once then.
-- Out: [done, released, id…]: how many of the links it has looked at, if jobs are large not all; how many jobs wait for nothing any more;
--      the
--      ids of those that were cancelled. Then links.
-- Invariant: a link is closed once. Jobs of graphs that are not decided stay blocked.

local K = keys_of(
  'queue jobs states keys scheduled running pages waiting cancelled results progress errors lines slots groups '
    .. 'blocked touched awaiting parents children ended graphs @due @ends')
local kept, limits = keep(K, false)
local links, done, at = ARGV[3], 0, 1
while at <= #links and read_bytes < LARGE do
  local id, ended, seen = string.sub(links, at, at + 15), {}, {}
  while string.sub(links, at, at + 15) == id do
    local parent = string.sub(links, at + 16, at + 31)
    if not seen[parent] then ended[#ended + 1] = { parent = parent, state = tonumber(string.sub(links, at + 32, at + 32)) } end
    seen[parent], at, done = true, at + 33, done + 1
  end
  local value = close_links(K, id, ended)
  if value and is_over(value) and not is_held(K, value) then go_on(K, id, value, kept) end
end
gone_on_all(K, kept, limits)
return with_links(K, { done, released, unpack(cancelled_ids) })
