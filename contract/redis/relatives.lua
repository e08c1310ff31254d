-- @include common.lua
-- @include links.lua
-- relatives: which jobs wait, or waited, for which.
-- KEYS: queue jobs states parents children ended @ends
-- Head: limit: most links to children of each.
-- In:  where those begin, as an earlier call has answered, or nothing; ids.
-- Out: per id: nil: unknown; else a list [state, parents, from, link…]. parents: as in `parents`, or nothing; from: where further links
--      begin,
--      or nothing; a link: the child and its part, oldest first.
-- Invariant: changes nothing.

local K = keys_of('queue jobs states parents children ended @ends')
local out = {}
for i = 4, #ARGV do
  local id, one = ARGV[i], false
  if redis.call('HEXISTS', K.jobs, id) == 1 then
    local packed = redis.call('HGET', K.states, id)
    local links, from = links_of(K, id, ARGV[3] ~= '' and ARGV[3], HEAD[6])
    one = { packed and cmsgpack.unpack(packed)[1] or 'waiting', redis.call('HGET', K.parents, id) or '', from or '', unpack(links) }
  end
  out[i - 3] = one
end
return out
