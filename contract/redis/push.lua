-- @include common.lua
-- push: stores jobs.
-- KEYS: queue jobs states keys scheduled returned fresh
-- In:  [now, bell, items], six items per job: id, rest, priority, delay, runAt (or false), key (or false). `rest` is
--      MessagePack of what follows pushedAt in the job's record.
-- Out: nothing if all were pushed; else a list with, per job, 0: pushed, 1: full, or the id of the existing job.
-- Invariant: places follow the order of pushes. The first write may take memory: a server without any refuses the push whole.

local K = { queue = KEYS[1], jobs = KEYS[2], states = KEYS[3], keys = KEYS[4], scheduled = KEYS[5], returned = KEYS[6] }
local function fresh(priority) return KEYS[7 + priority] end

local input = cmsgpack.unpack(ARGV[1])
local now, bell, items = clock(input[1]), input[2], input[3]
local count = #items / 6
local ids = {}
for i = 1, count do ids[i] = items[i * 6 - 5] end

local place = redis.call('HINCRBY', K.queue, 'place', count) - count
local settings = redis.call('HMGET', K.queue, 'capacity', 'holes', 'asleep', 'asleepBy')
local known = hmget(K.jobs, ids)
local holes = tonumber(settings[2] or 0)
local tombs = holes > 0 and hmget(K.states, ids)

local room = math.huge
if settings[1] then
  room = settings[1] + holes - redis.call('ZCARD', K.scheduled) - redis.call('ZCARD', K.returned)
  for priority = 0, 9 do room = room - redis.call('LLEN', fresh(priority)) end
end

local records, lines, states, due_times, returned, keys, outcomes = {}, {}, {}, {}, {}, {}, {}
local taken, by_key = {}, {}
local stored, ready, full, plain = 0, false, false, true
local stamp, pack = '\166' .. struct.pack('>I6', now), cmsgpack.pack

for i = 1, count do
  local at = i * 6 - 5
  local id, key = items[at], items[at + 5]
  local existing = (known[i] or taken[id]) and id
  if not existing and key then existing = by_key[key] or redis.call('HGET', K.keys, key) end
  if existing then
    outcomes[i] = bin(existing)
    plain = false
  elseif room <= 0 then
    outcomes[i] = '\1'
    plain, full = false, true
  else
    outcomes[i] = '\0'
    room = room - 1
    taken[id] = true
    records[stored * 2 + 1] = id
    records[stored * 2 + 2] = (key and '\150' or '\149') .. pack(place + i) .. stamp .. items[at + 1]
    stored = stored + 1
    if key then
      by_key[key] = id
      keys[#keys + 1] = key
      keys[#keys + 1] = id
    end
    local due = now
    if items[at + 4] then due = math.max(now, items[at + 4]) elseif items[at + 3] > 0 then due = now + items[at + 3] end
    local hole = tombs and tombs[i] and HOLE or 0
    local priority = items[at + 2]
    if due > now then
      due = math.min(due, SPAN - 1)
      states[#states + 1] = id
      states[#states + 1] = encode('s', hole + (key and KEYED or 0), 0, 0, due, 0, 0, '')
      due_times[#due_times + 1] = due
      due_times[#due_times + 1] = id
    else
      ready = true
      if hole > 0 then
        -- Its old hole is still in the list, so it cannot stand there again.
        states[#states + 1] = id
        states[#states + 1] = encode('w', hole + (key and KEYED or 0), 0, 0, 0, 0, 0, '')
        returned[#returned + 1] = score(priority, place + i)
        returned[#returned + 1] = id
      else
        local line = lines[priority]
        if line then line[#line + 1] = id else lines[priority] = { id } end
      end
    end
  end
end

call('HSET', K.jobs, records)
call('HSET', K.states, states)
call('HSET', K.keys, keys)
call('ZADD', K.scheduled, due_times)
call('ZADD', K.returned, returned)
for priority, line in pairs(lines) do call('RPUSH', fresh(priority), line) end
if ready then wake(K, bell, now, settings[3], settings[4]) end
if full then redis.call('HSET', K.queue, 'room', now) end
if plain then return '' end
return list_of(count) .. table.concat(outcomes)
