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
-- In:  per link 33 bytes: the child, the parent, and a digit, as in `ended`.
-- Out: [done, released, id…]: how many of the links it has looked at, if jobs are large not all; how many jobs wait for nothing any more;
--      the
--      ids of those that were cancelled. Then links.
-- Invariant: a link is closed once. Jobs of graphs that are not decided stay blocked.

local K = keys_of(
  'queue jobs states keys scheduled running pages waiting cancelled results progress errors lines slots groups '
    .. 'blocked touched awaiting parents children ended graphs @due @ends')
local kept, limits = keep(K, false)
local done = 0
for at = 1, #ARGV[3], 33 do
  if read_bytes >= LARGE then break end
  local id = string.sub(ARGV[3], at, at + 15)
  local value = close_link(K, id, string.sub(ARGV[3], at + 16, at + 31), tonumber(string.sub(ARGV[3], at + 32, at + 32)))
  if value and is_over(value) then
    write_parents(K, id)
    if not is_held(K, value) then go_on(K, id, value, kept) end
  end
  done = done + 1
end
for id in pairs(parents_changed) do write_parents(K, id) end
gone_on_all(K, kept, limits)
return with_links(K, { done, released, unpack(cancelled_ids) })
