-- @include common.lua
-- adopt: jobs of this partition that wait for one job wait for another one, too: graphs.md, `within`.
-- KEYS: queue waits parents
-- Head: look: true: changes nothing.
-- In:  per job 48 bytes: its id, the job that it waits for, the new one.
-- Out: per job, 0, or 1: it did not wait for that job.
-- Invariant: to call it again changes nothing.

local K = keys_of('queue waits parents')
may_write(K)

-- @return the ids behind `from`, with this one
local function with(ids, id, from)
  local at = string.find(ids, id, from, true)
  while at and (at - from) % 16 ~= 0 do at = string.find(ids, id, at + 1, true) end
  return at and ids or ids .. id, at
end

local out = {}
for at = 1, #ARGV[3], 48 do
  local id, before, new = string.sub(ARGV[3], at, at + 15), string.sub(ARGV[3], at + 16, at + 31), string.sub(ARGV[3], at + 32, at + 47)
  local value = redis.call('HGET', K.waits, id)
  local kind = value and string.sub(value, 1, 1)
  local _, waits = with(value or '', before, 18)
  out[#out + 1] = 1
  if (kind == 'c' or kind == 'r') and waits then
    out[#out] = 0
    if not HEAD[6] then
      redis.call('HSET', K.waits, id, (with(value, new, 18)))
      redis.call('HSET', K.parents, id, (with(redis.call('HGET', K.parents, id) or '', new, 1)))
    end
  end
end
return out
