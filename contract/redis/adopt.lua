-- @include common.lua
-- adopt: jobs of this partition that wait for one job wait for another one, too: graphs.md, `within`.
-- KEYS: queue parents
-- Head: look: true: changes nothing.
-- In:  per job 48 bytes: its id, the job that it waits for, the new one.
-- Out: per job, 0, or 1: it did not wait for that job.
-- Invariant: to call it again changes nothing.

local K = keys_of('queue parents')
local OPEN = 21 -- where the ids begin: common.lua
may_write(K)

local function is_open(value, id, open)
  local at = string.find(value, id, OPEN, true)
  while at and (at - OPEN) % 16 ~= 0 do at = string.find(value, id, at + 1, true) end
  return at and at < OPEN + open * 16
end

-- @return whether it waits for `before`
local function adopt(id, before, new)
  local value = redis.call('HGET', K.parents, id)
  if not value then return false end
  local kind, graph, open = struct.unpack('>c1c16I3', value)
  if not is_open(value, before, open) then return false end
  if HEAD[6] or is_open(value, new, open) then return true end
  redis.call('HSET', K.parents, id, struct.pack('>c1c16I3', kind, graph, open + 1) .. new .. string.sub(value, OPEN))
  return true
end

local out = {}
for at = 1, #ARGV[3], 48 do
  local id, before, new = string.sub(ARGV[3], at, at + 15), string.sub(ARGV[3], at + 16, at + 31), string.sub(ARGV[3], at + 32, at + 47)
  out[#out + 1] = adopt(id, before, new) and 0 or 1
end
return out
