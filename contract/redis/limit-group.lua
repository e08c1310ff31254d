-- @include common.lua
-- @include version.lua
-- @include run.lua
-- @include new-queue.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include grouped.lua
-- @include limits.lua
-- @include backlog.lua
-- limit-group: gives a group limits of its own.
-- Head: group: empty for the jobs without one; limits: [running, rate, weight], the first two false where the queue's hold; nil: none of
--      its own.
-- In:  nothing.
-- Out: nothing.
-- Invariant: makes the queue a grouped one.

local name, own = HEAD[5], HEAD[6] or false
may_write()
if redis.call('HEXISTS', K.queue, 'listed') == 0 then make_queue() end
know()
local grouped = GROUPED
local limits = limits_of(grouped)
if not grouped then make_grouped(limits) end
local group = limits.group(name)
limits.limit_with(group, own)
limits.save()
redis.call('SADD', K.touched, name)
ring('work')
return {}
