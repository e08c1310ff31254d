-- @include common.lua
-- push: stores jobs.
-- KEYS: queue jobs states keys scheduled returned fresh
-- In:  [now, bell, least, most, items, extras, floor], four items per job: name, start, rest, priority. name: the id's last 6 bytes; start: the
--      first 11 bytes of the job's record, without the flags APART and WIDE; rest: what follows pushedAt. With 16 added to the priority, the
--      job has three extras: key (or false), delay, runAt (or false). least, most: of the times in the ids, so that not each is looked at.
--      floor: as `register` gave it, from whoever has registered the queue and does not know yet whether the partition is `listed`; else false.
-- Out: nothing if all were pushed; else a list with, per job, 0: pushed, 1: full, or the id of the existing job; and then true where the partition is
--      not listed: register the queue once more, before the push is acknowledged, and then call `listed`. Without a floor nil: nothing was
--      stored, since it is not listed: the queue may have been removed. Register it, and push again.
-- Invariant: places follow the order of pushes. The first write may take memory: a server without any refuses the push whole.

local K = { queue = KEYS[1], jobs = KEYS[2], states = KEYS[3], keys = KEYS[4], scheduled = KEYS[5], returned = KEYS[6] }
local function fresh(priority) return KEYS[7 + priority] end

local input = cmsgpack.unpack(ARGV[1])
local now, bell, items, extras = clock(input[1]), input[2], input[5], input[6]
local count = #items / 4
local names = {}
for i = 1, count do names[i] = items[i * 4 - 3] end

-- The whole id is seldom needed.
local function id_at(i)
  return struct.pack('c10c6', items[i * 4 - 2], names[i])
end

local settings = redis.call('HMGET', K.queue, 'capacity', 'holes', 'asleep', 'asleepBy', 'twins', 'listed')
local listed, floor = settings[6], input[7]
if not listed and not floor then return NIL end
local place = redis.call('HINCRBY', K.queue, 'place', count) - count
if place == 0 then
  -- What the queue knows from its first job on, so that a claim that is lost cannot have been the one to note it.
  redis.call('HSET', K.queue, 'run', server_run() .. (floor and floor > 0 and string.format('%.0f', floor) or ''))
  redis.call('PERSIST', K.queue)
end
local found = hmget(K.jobs, names)
local twins = false
if tonumber(settings[5] or 0) > 0 then
  local ids = {}
  for i = 1, count do ids[i] = id_at(i) end
  twins = hmget(K.jobs, ids)
end
local holes = tonumber(settings[2] or 0)
local tombs = holes > 0 and hmget(K.states, names)

local room = math.huge
if settings[1] then
  room = settings[1] + holes - redis.call('ZCARD', K.scheduled) - redis.call('ZCARD', K.returned)
  for priority = 0, 9 do room = room - redis.call('LLEN', fresh(priority)) end
end

local records, lines, states, due_times, returned, keys, absorbed, outcomes = {}, {}, {}, {}, {}, {}, {}, {}
-- Of this call: name → start, id of a twin → true.
local taken, taken_twins, by_key = {}, {}, {}
local stored, ready, full, plain, twinned, extra = 0, false, false, true, 0, 1

-- Whether one can be told from the last two bytes of the other.
local function near(now, made)
  local since = now - made
  return since >= -32768 and since < 32768
end

local pack = struct.pack
local stamp = pack('>I2', now % 65536)
local usual = place + count < 4294967296 and near(now, input[3]) and near(now, input[4])

local function unusual(start, at, rest)
  local wide, apart = at >= 4294967296, not near(now, (struct.unpack('>I6', start)))
  local shape = string.byte(start, 11) + (wide and WIDE or 0) + (apart and APART or 0)
  return pack('>c10B' .. (wide and 'I6' or 'I4'), start, shape, at) .. (apart and pack('>I6', now) or stamp) .. rest
end

for i = 1, count do
  local at = i * 4 - 2
  local name, start, rest, priority = names[i], items[at], items[at + 1], items[at + 2]
  local key, due = false, now
  if priority >= 16 then
    priority, key = priority - 16, extras[extra]
    due = extras[extra + 2] and math.max(now, extras[extra + 2]) or now + extras[extra + 1]
    extra = extra + 3
  end
  local existing, twin = false, false
  if found[i] or taken[name] or twins and twins[i] then
    local id = id_at(i)
    local known = owns(id, found[i] or taken[name] or '') or twins and twins[i] or taken_twins[id]
    existing, twin = known and id, (found[i] or taken[name]) and true
  end
  if not existing and key then existing = by_key[key] or redis.call('HGET', K.keys, key) end
  if existing then
    outcomes[i] = bin(existing)
    plain = false
  elseif room <= 0 then
    outcomes[i] = '\1'
    plain, full = false, true
  else
    room = room - 1
    if twin then
      twinned = twinned + 1
      taken_twins[id_at(i)] = true
    else
      taken[name] = start
    end
    records[stored * 2 + 1] = twin and id_at(i) or name
    records[stored * 2 + 2] = usual and start .. pack('>I4', place + i) .. stamp .. rest or unusual(start, place + i, rest)
    stored = stored + 1
    if key then
      local id = id_at(i)
      by_key[key] = id
      keys[#keys + 1] = key
      keys[#keys + 1] = id
    end
    local hole = 0
    if tombs and tombs[i] and not twin then
      hole = HOLE
      absorbed[#absorbed + 1] = name
    end
    if due > now then
      local id = id_at(i)
      due = math.min(due, SPAN - 1)
      states[#states + 1] = id
      states[#states + 1] = encode('s', hole + (key and KEYED or 0), 0, 0, due, 0, 0, '')
      due_times[#due_times + 1] = due
      due_times[#due_times + 1] = id
    else
      ready = true
      if hole > 0 or twin then
        -- Its name is in the list already, or may be, so it cannot stand there again.
        local id = id_at(i)
        states[#states + 1] = id
        states[#states + 1] = encode('w', hole + (key and KEYED or 0), 0, 0, 0, 0, 0, '')
        returned[#returned + 1] = score(priority, place + i)
        returned[#returned + 1] = id
      else
        local line = lines[priority]
        if line then line[#line + 1] = name else lines[priority] = { name } end
      end
    end
  end
end

call('HSET', K.jobs, records)
call('HDEL', K.states, absorbed)
if twinned > 0 then redis.call('HINCRBY', K.queue, 'twins', twinned) end
call('HSET', K.states, states)
call('HSET', K.keys, keys)
call('ZADD', K.scheduled, due_times)
call('ZADD', K.returned, returned)
for priority, line in pairs(lines) do call('RPUSH', fresh(priority), line) end
if ready then wake(K, bell, now, settings[3], settings[4]) end
if full then redis.call('HSET', K.queue, 'room', now) end
if plain and listed then return '' end
for i = 1, count do outcomes[i] = outcomes[i] or '\0' end
return list_of(count + (listed and 0 or 1)) .. table.concat(outcomes) .. (listed and '' or '\195')
