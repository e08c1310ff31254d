-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include grouped.lua
-- @include limits.lua
-- stats: what people look at.
-- Head: minutes.
-- In:  nothing.
-- Out: nothing: there is no such queue; else [map], MessagePack of a map: paused, capacity, counts and totals by name, oldestWaiting: ms
--      since the oldest waiting job was due; limits:
--      [running, rate, grouped, groupRunning, groupRate], what is not set false; nextStart; groupsAtLimit; groupsHeld; lastClaim: ms since
--      a worker of it was last heard of; operator: see
--      configure.lua; minutes: lists as `record` keeps them, of the last minutes; over 60: of all time. Absent: none.
-- Invariant: nothing here walks the jobs: counts are maintained, the age is of the first page of each priority. Numbers of groups are those
--      of the last claim; of the groups to which something happened since then, 1,000 are looked at.

local minutes = HEAD[5]
local settings = redis.call('HMGET', K.queue, 'paused', 'capacity', 'waiting', 'limits', 'operator')
if redis.call('SISMEMBER', K.queues, QUEUE) == 0 then return {} end
local oldest, claimed = math.huge, tonumber(redis.call('HGET', K.claimed, QUEUE) or nil)

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

-- @return how many groups wait for a slot of their own; how many are held
local function groups_now(limits)
  local MOST_GROUPS = 1000
  local at_limit, held = redis.call('SCARD', K.blocked), redis.call('ZCOUNT', K.held, '(' .. text(NOW), '+inf')
  local seen = {}

  -- Counts a group as it is now, not as the last claim left it.
  local function count_anew(name)
    if seen[name] then return end
    seen[name] = true
    local group = limits.group(name)
    -- None of its jobs has started.
    if not group.known then return end
    if group.at == limits.BLOCKED then at_limit = at_limit - 1
    elseif group.at == limits.HELD and tonumber(redis.call('ZSCORE', K.held, name)) > NOW then held = held - 1 end
    local wait = limits.startable_in(group)
    if limits.first(group) and not wait then at_limit = at_limit + 1 elseif wait and wait > 0 then held = held + 1 end
  end

  for _, name in ipairs(redis.call('SRANDMEMBER', K.touched, MOST_GROUPS)) do count_anew(name) end
  -- The settings of all groups have changed, and claims have looked at those before this one.
  local from = limits.hash.relook
  local name = from and limits.next_name(from ~= '-' and string.sub(from, 2) or nil)
  for _ = 1, MOST_GROUPS do
    if not name then break end
    count_anew(name)
    name = limits.next_name(name)
  end
  return at_limit, held
end

local STATES = { 'scheduled', 'running', 'done', 'dead', 'cancelled' }
local TOTALS = { 'pushed', 'done', 'failed', 'dead', 'cancelled', 'lost', 'released' }

local function counts_now()
  local counts = { waiting = tonumber(settings[3]) or 0, blocked = redis.call('ZCARD', K.awaiting) }
  for _, state in ipairs(STATES) do counts[state] = redis.call('ZCARD', K[state]) end
  return counts
end

local function totals_now()
  local totals = {}
  for _, name in ipairs(TOTALS) do totals[name] = tonumber(redis.call('HGET', K.queue, 'total:' .. name)) or 0 end
  return totals
end

local out = {
  paused = settings[1] == '1', capacity = tonumber(settings[2]), counts = counts_now(), totals = totals_now(),
  oldestWaiting = oldest < math.huge and math.max(0, NOW - oldest) or nil,
  nextStart = 0, lastClaim = claimed and math.max(0, NOW - claimed) or nil, groupsAtLimit = 0, groupsHeld = 0,
  operator = settings[5] or nil, minutes = {},
}
if settings[4] then
  local grouped = settings[4] == 'groups'
  local limits = limits_of(grouped)
  if grouped then out.groupsAtLimit, out.groupsHeld = groups_now(limits) end
  local list = limits.settings
  if list[1] or list[2] or grouped then out.limits = list end
  out.nextStart = limits.startable(1) or nil
end
if minutes > 60 then
  local measured = redis.call('HGET', K.queue, 'measured')
  if measured then out.minutes[1] = cmsgpack.unpack(measured) end
elseif minutes > 0 then
  local current = math.floor(NOW / 60000)
  for _, packed in ipairs(redis.call('HVALS', K.histograms)) do
    local slice = cmsgpack.unpack(packed)
    if slice[1] > current - minutes and slice[1] <= current then out.minutes[#out.minutes + 1] = slice end
  end
end
return { cmsgpack.pack(out) }
