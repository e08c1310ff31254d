-- @include common.lua
-- @include jobs.lua
-- stats: what people look at.
-- KEYS: queue jobs states scheduled running returned done dead cancelled histograms fresh
-- In:  [now, bell, minutes]
-- Out: [paused, capacity or nil, scheduled, waiting, running, done, dead, cancelled, ms since the oldest waiting job was due or nil,
--      minute…], each minute as `record` keeps it, of the last `minutes`.
-- Invariant: nothing here walks the jobs: counts are the sizes of the keys, the age is of the first 64 of each priority.

local K = { queue = KEYS[1], jobs = KEYS[2], states = KEYS[3] }
local RETURNED, HISTOGRAMS = KEYS[6], KEYS[10]
local function fresh(priority) return KEYS[11 + priority] end

local input = cmsgpack.unpack(ARGV[1])
local now, minutes = clock(input[1]), input[3]
local settings = redis.call('HMGET', K.queue, 'paused', 'capacity', 'holes')
local waiting = redis.call('ZCARD', RETURNED) - (settings[3] or 0)
local oldest = math.huge

for priority = 0, 9 do
  local length = redis.call('LLEN', fresh(priority))
  waiting = waiting + length
  for start = 0, math.min(length, 100000) - 1, 64 do
    local ids, records = fresh_jobs(K, redis.call('LRANGE', fresh(priority), start, start + 63))
    local states, found = hmget(K.states, ids), false
    for i = 1, #ids do
      if not states[i] and not found then
        local _, pushed = facts(records[i])
        oldest = math.min(oldest, pushed)
        found = true
      end
    end
    if found then break end
  end
  local to = '(' .. string.format('%.17g', score(priority - 1, 0))
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', RETURNED, score(priority, 0), to, 'LIMIT', 0, 64)) do
    local _, _, _, _, due = decode(redis.call('HGET', K.states, id))
    if due == 0 then
      local _, pushed = facts(record_of(K, id))
      due = pushed
    end
    oldest = math.min(oldest, due)
  end
end

local slices = {}
if minutes > 0 then
  local current = math.floor(now / 60000)
  for _, slice in ipairs(redis.call('HVALS', HISTOGRAMS)) do
    local at = cmsgpack.unpack(slice)[1]
    if at > current - minutes and at <= current then slices[#slices + 1] = slice end
  end
end

local function size(command, key) return cmsgpack.pack(redis.call(command, key)) end
return list_of(9 + #slices) .. (settings[1] == '1' and '\195' or '\194')
  .. (settings[2] and cmsgpack.pack(tonumber(settings[2])) or NIL)
  .. size('ZCARD', KEYS[4]) .. cmsgpack.pack(waiting) .. size('ZCARD', KEYS[5]) .. size('LLEN', KEYS[7])
  .. size('ZCARD', KEYS[8]) .. size('ZCARD', KEYS[9])
  .. (oldest < math.huge and cmsgpack.pack(math.max(0, now - oldest)) or NIL) .. table.concat(slices)
