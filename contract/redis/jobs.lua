-- What scripts that look at jobs' records share.

local function is_keyed(record)
  return string.byte(record, 11) % 32 >= WITH_KEY
end

-- place, pushedAt, priority, attempts, key or nil
local function facts(record)
  local shape = string.byte(record, 11)
  local place, at = struct.unpack(shape >= WIDE and '>I6' or '>I4', record, 12)
  local pushed
  if shape % 128 >= APART then
    pushed, at = struct.unpack('>I6', record, at)
  else
    pushed, at = struct.unpack('>I2', record, at)
    local made = struct.unpack('>I6', record)
    pushed = made + (pushed - made + 32768) % 65536 - 32768
  end
  local _, attempts, key = cmsgpack.unpack_limit(record, shape % 32 >= WITH_KEY and 2 or 1, at - 1)
  return place, pushed, shape % 16, attempts, key
end

-- By id; false: unknown.
local function record_of(K, id)
  local record = redis.call('HGET', K.jobs, name_of(id))
  if record and owns(id, record) then return record end
  return redis.call('HGET', K.jobs, id)
end

local function records_of(K, ids)
  local names = {}
  for i = 1, #ids do names[i] = name_of(ids[i]) end
  local records = hmget(K.jobs, names)
  for i = 1, #ids do
    if not records[i] or not owns(ids[i], records[i]) then records[i] = redis.call('HGET', K.jobs, ids[i]) end
  end
  return records
end

-- What stands at these names of a list: ids and records; of a hole that outlived its job, its name and false.
local function fresh_jobs(K, names)
  local records, ids, pack = hmget(K.jobs, names), {}, struct.pack
  for i = 1, #names do ids[i] = records[i] and pack('c10c6', records[i], names[i]) or names[i] end
  return ids, records
end
