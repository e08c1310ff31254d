-- What scripts that bring jobs to an end share.

-- Somebody looked for a job that is not finished.
local function finished_bell(K, bell, now, ids)
  if #ids > 0 and recent(redis.call('HGET', K.queue, 'watched'), now) then ring(bell, 'finished', ids) end
end

local function keep(K, letter)
  if letter == 'd' then return tonumber(redis.call('HGET', K.queue, 'keepDone') or 3600000) end
  return tonumber(redis.call('HGET', K.queue, 'keepDead') or 604800000)
end

-- Jobs that are kept no longer, with their states (false: none).
local function forget(K, ids, states)
  if #ids == 0 then return end
  local names, holes, twins = {}, {}, 0
  for i = 1, #ids do
    names[i] = name_of(ids[i])
    if states[i] and string.byte(states[i], 2) >= HOLE then
      holes[#holes + 1] = names[i]
      holes[#holes + 1] = encode('h', HOLE, 0, 0, 0, 0, 0, '')
    end
  end
  if tonumber(redis.call('HGET', K.queue, 'twins') or 0) > 0 then
    local records = hmget(K.jobs, names)
    for i = 1, #ids do
      if not records[i] or not owns(ids[i], records[i]) then names[i], twins = ids[i], twins + 1 end
    end
  end
  call('HDEL', K.jobs, names)
  call('HDEL', K.states, ids)
  call('HSET', K.states, holes)
  if twins > 0 then redis.call('HINCRBY', K.queue, 'twins', -twins) end
  for _, key in ipairs({ K.results, K.progress, K.errors }) do
    if redis.call('EXISTS', key) == 1 then call('HDEL', key, ids) end
  end
end

-- A live job that has a key gives it up.
local function unkey(K, id, flags, record)
  if flags % 2 == 0 then return end
  local _, _, _, _, key = facts(record or record_of(K, id))
  redis.call('HDEL', K.keys, key)
end
