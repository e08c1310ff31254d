-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include grouped.lua
-- @include limits.lua
-- @include backlog.lua
-- limit-group: gives a group limits of its own.
-- KEYS: queue jobs states running pages waiting limits lines slots groups names touched @ends
-- Head: group: empty for the jobs without one; limits: [running, rate, weight], the first two false where the queue's hold; nil: none of
--      its own; turn: nil, or see `turn_of`. If the partition has had a later one, nothing is changed.
-- In:  nothing.
-- Out: [listed, turn], as `configure`.
-- Invariant: makes the queue a grouped one.

local K = keys_of('queue jobs states running pages waiting limits lines slots groups names touched @ends')
local name, own, turn = HEAD[6], HEAD[7] or false, HEAD[8]
local function answer() return { redis.call('HEXISTS', K.queue, 'listed'), turn or 0 } end
may_write(K)
if turn then
  turn = turn_of(K, 'ownTurn', turn)
  if not turn then return answer() end
end
redis.call('HSET', K.queue, 'set', 1)
redis.call('PERSIST', K.queue)
local grouped = redis.call('HGET', K.queue, 'limits') == 'groups'
local limits = limits_of(K, grouped)
if not grouped then make_grouped(K, limits) end
local group = limits.group(name)
limits.limit_with(group, own)
limits.save()
redis.call('SADD', K.touched, name)
ring('work')
return answer()
