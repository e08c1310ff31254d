-- What requeue and bulk share: a dead or cancelled job waits again. Use: `send_back` each, then `entered` once.

-- @return whether it did: not where a live job has its key
local function send_back(id, state, list)
  local key = list[7]
  settle_all_of(id)
  -- Of a key that is remembered there is more than the id.
  if key and #(redis.call('HGET', K.keys, key) or '') == 16 then return false end
  redis.call('ZREM', state[1] == 'dead' and K.dead or K.cancelled, id)
  if key then redis.call('HSET', K.keys, key, id) end
  put_state(id, 'waiting', state[2], 0, NOW, 0, 0, false)
  enter(list[3], list[1], id, list[5], list[9])
  return true
end
