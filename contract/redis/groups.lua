-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include grouped.lua
-- @include limits.lua
-- groups: the groups of a grouped queue that have waiting or running jobs or limits of their own.
-- Head: limit, after: a name, or nil: from the first; only: a name, or nil.
-- In:  nothing.
-- Out: [last, group…], by the bytes of their names. last: from where to go on, or nothing: there are no more. Five items per group: its
--      name, MessagePack of its own limits or nothing, how many of its jobs wait, how many run, ms until its first job may start or -1.
-- Invariant: changes nothing. Looks at 1,000 names at most.

local limit, after, only = HEAD[5], HEAD[6], HEAD[7]
local out = { false }
if redis.call('HGET', K.queue, 'limits') ~= 'groups' then return out end
local limits = limits_of(true)

local function describe(name)
  local group = limits.group(name)
  local waiting = limits.count_waiting(group)
  if waiting == 0 and group.runs == 0 and not group.own then return end
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] = name, group.own and cmsgpack.pack(group.own) or '', waiting, group.runs
  out[n + 5] = limits.startable_in(group) or -1
end

if only then
  describe(only)
  return out
end
local name = limits.next_name(after)
for i = 1, 1000 do
  if not name then break end
  if #out > limit * 5 or i == 1000 then
    out[1] = after or false
    break
  end
  describe(name)
  after = name
  name = limits.next_name(name)
end
return out
