-- What scripts that bring live jobs to an end do with their keys: operations.md, "Once for a while". Needs jobs.lua, endings.lua.

-- A key is remembered until then, by the job with this id.
local function remember(key, id, till)
  if till <= NOW then return redis.call('HDEL', K.keys, key) end
  redis.call('HSET', K.keys, key, id .. text(till))
  redis.call('ZADD', K.remembered, text(till), key)
  note_end(till)
end

-- @return until when the key of a job that ended then is remembered; nil: it is not
local function till_of(list, ended)
  local time = list[11]
  return time and (time < 0 and list[2] - time or ended + time)
end

-- A follower that is no more has no key.
local function unfollow(id, key, follower)
  if follower ~= id then return false end
  redis.call('HDEL', K.keys, '\0' .. key)
  return true
end

-- A follower has the key, and is due.
local function set_off(id)
  local state = state_of(id)
  local due = math.max(NOW, state[8])
  put_state(id, 'scheduled', state[2], state[3], due, state[5], 0, state[7])
  redis.call('ZADD', K.scheduled, text(due), id)
  Q.moves = true
  if due < NOW + SOON then Q.soon, Q.unasked = true, true end
end

-- A live job gives up its key: to its follower, which is due now, or to memory, if `answers`; or for good.
local function unkey(id, list, answers)
  local key = list[7]
  if not key then return end
  local kept = redis.call('HMGET', K.keys, key, '\0' .. key)
  local follower = kept[2]
  -- One that was cancelled as soon as it was pushed never had it.
  if unfollow(id, key, follower) or kept[1] ~= id then return end
  if follower then
    redis.call('HDEL', K.keys, '\0' .. key)
    redis.call('HSET', K.keys, key, follower)
    set_off(follower)
    return
  end
  local till = answers and till_of(list, NOW)
  if till then remember(key, id, till) else redis.call('HDEL', K.keys, key) end
end

-- A job that has ended is removed, and its key is forgotten with it.
local function forget_key(id, list)
  local key = list[7]
  local value = key and redis.call('HGET', K.keys, key)
  if value and #value > 16 and string.sub(value, 1, 16) == id then redis.call('HDEL', K.keys, key) end
end

-- Forgets keys whose time has come. @return how many were looked at
local function forget_keys(limit)
  if limit <= 0 then return 0 end
  local keys = redis.call('ZRANGEBYSCORE', K.remembered, '-inf', text(NOW), 'LIMIT', 0, limit)
  for i, value in ipairs(hmget(K.keys, keys)) do
    if value and #value > 16 and tonumber(string.sub(value, 17)) <= NOW then redis.call('HDEL', K.keys, keys[i]) end
  end
  call('ZREM', K.remembered, keys)
  return #keys
end
