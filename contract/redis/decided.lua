-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include links.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- @include parents.lua
-- @include staged.lua
-- decided: the jobs of a graph that was decided start, or go.
-- KEYS: queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors lines slots groups
--      blocked touched awaiting parents children ended graphs staged @due @ends
-- Head: committed: whether they start; limit: at most so many.
-- In:  the id of the graph.
-- Out: [left]: how many are left to another call. Then links.
-- Invariant: of a graph that starts, no job waits for the decision after the first call. To call it again does nothing more.

local K = keys_of(
  'queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors lines slots groups '
    .. 'blocked touched awaiting parents children ended graphs staged @due @ends')
local kept, limits = keep(K, false)
local left = decide_staged(K, ARGV[3], HEAD[6], HEAD[7], kept)
if HEAD[6] then gone_on_all(K, kept, limits) else removed_all(K, limits) end
return with_links(K, { left })
