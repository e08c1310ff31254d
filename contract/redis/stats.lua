-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include limits.lua
-- stats: what people look at.
-- KEYS: queue jobs states scheduled running pages waiting done dead cancelled histograms limits lines slots groups names
-- Head: minutes.
-- In:  nothing.
-- Out: [paused, capacity or -1, scheduled, waiting, running, done, dead, cancelled, ms since the oldest waiting job was due or -1,
--      limits, nextStart (-1: as many run as may), groupsAtLimit, groupsHeld, minute…]. limits: nothing, or MessagePack of [running, rate, grouped,
--      groupRunning, groupRate], what is not set false. Each minute as `record` keeps it, of the last `minutes`.
-- Invariant: nothing here walks the jobs: counts are maintained, the age is of the first page of each priority. Groups are counted up to 10,000.

local K = keys_of('queue jobs states scheduled running pages waiting done dead cancelled histograms limits lines slots groups names')
local minutes = HEAD[6]
local settings = redis.call('HMGET', K.queue, 'paused', 'capacity', 'waiting', 'limits')
local oldest = math.huge

for priority = 9, 0, -1 do
  local from, to = scores_of(priority)
  local name = redis.call('ZRANGEBYSCORE', K.waiting, from, to, 'LIMIT', 0, 1)[1]
  local page = name and redis.call('HGET', K.pages, name) or ''
  local ids, fresh = {}, false
  for at = 1, #page, ENTRY do ids[#ids + 1] = string.sub(page, at + 1, at + ENTRY - 1) end
  local states = hmget(K.states, ids)
  for i = 1, #ids do
    local due = states[i] and cmsgpack.unpack(states[i])[4] or 0
    if due > 0 then
      oldest = math.min(oldest, due)
    elseif not fresh then
      -- Those behind it were pushed later.
      fresh = true
      oldest = math.min(oldest, facts(redis.call('HGET', K.jobs, ids[i]))[2])
    end
  end
end

-- @return the limits, nextStart, groupsAtLimit, groupsHeld
local function limits_now()
  if not settings[4] then return '', 0, 0, 0 end
  local grouped, at_limit, held = settings[4] == 'groups', 0, 0
  local limits = limits_of(K, grouped)
  local list = limits.settings
  local name = grouped and limits.next_name(nil)
  for _ = 1, 10000 do
    if not name then break end
    local group = limits.group(name)
    local first = limits.first(group)
    local wait = limits.group_startable(group, first)
    if not wait then at_limit = at_limit + (first and 1 or 0) elseif wait > 0 then held = held + 1 end
    name = limits.next_name(name)
  end
  local packed = (list[1] or list[2] or grouped) and cmsgpack.pack(list) or ''
  return packed, limits.startable(1) or -1, at_limit, held
end

local out = {
  settings[1] == '1' and 1 or 0, tonumber(settings[2]) or -1,
  redis.call('ZCARD', K.scheduled), tonumber(settings[3]) or 0, redis.call('ZCARD', K.running), redis.call('LLEN', K.done),
  redis.call('ZCARD', K.dead), redis.call('ZCARD', K.cancelled), oldest < math.huge and math.max(0, NOW - oldest) or -1,
  limits_now(),
}
if minutes > 0 then
  local current = math.floor(NOW / 60000)
  for _, slice in ipairs(redis.call('HVALS', K.histograms)) do
    local at = cmsgpack.unpack(slice)[1]
    if at > current - minutes and at <= current then out[#out + 1] = slice end
  end
end
return out
