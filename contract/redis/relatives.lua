-- @include common.lua
-- relatives: which jobs wait, or waited, for which.
-- KEYS: queue jobs states waits parents children
-- Head: limit: most links to children of each.
-- In:  a link behind which those begin, or nothing; ids.
-- Out: per id: nil: unknown; else a list [state, waits, parents, link…]. waits: as in `waits`, if it is blocked, else nothing; parents: their ids,
--      one after the other; a link: parent, child and its part, by child.
-- Invariant: changes nothing.

local K = keys_of('queue jobs states waits parents children')
local out = {}
for i = 4, #ARGV do
  local id, one = ARGV[i], false
  if redis.call('HEXISTS', K.jobs, id) == 1 then
    local packed = redis.call('HGET', K.states, id)
    local last = '(' .. id .. string.rep('\255', 17)
    one = {
      packed and cmsgpack.unpack(packed)[1] or 'waiting', redis.call('HGET', K.waits, id) or '',
      redis.call('HGET', K.parents, id) or '',
      unpack(redis.call('ZRANGEBYLEX', K.children, '(' .. (ARGV[3] ~= '' and ARGV[3] or id), last, 'LIMIT', 0, HEAD[6])),
    }
  end
  out[i - 3] = one
end
return out
