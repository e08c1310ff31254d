-- What requeue and bulk share: a dead or cancelled job waits again. Use: `send_back` each, then `enter_back` once.

local came_back = {}

-- @return whether it did: not where a live job has its key
local function send_back(id, state, list)
  local key = list[7]
  settle_all_of(id)
  -- Of a key that is remembered there is more than the id.
  if key and #(redis.call('HGET', K.keys, key) or '') == 16 then return false end
  redis.call('ZREM', state[1] == 'dead' and K.dead or K.cancelled, id)
  if key then redis.call('HSET', K.keys, key, id) end
  put_state(id, 'waiting', state[2], 0, NOW, 0, 0, false)
  came_back[#came_back + 1] = { id, QUEUE, state[2], list }
  return true
end

-- Opens the links of a job to its live parents, and closes the others. @return how many are open
local function reopen(id, value)
  local parents, open, closed = linked('p', id, 1000000), {}, {}
  for i, is_live in ipairs(are_live(parents)) do
    local list, link = is_live and open or closed, parents[i] .. id
    -- A parent that is gone has no link any more; a job with its id is another one.
    local from = redis.call('ZREM', K.links, (is_live and 'c' or 'o') .. link)
    if from == 1 or redis.call('ZSCORE', K.links, (is_live and 'o' or 'c') .. link) then
      list[#list + 1], list[#list + 2] = '0', (is_live and 'o' or 'c') .. link
    end
  end
  call('ZADD', K.links, open)
  call('ZADD', K.links, closed)
  redis.call('HSET', K.waits, id, text(#open + value % 2))
  return #open / 2
end

-- All have come back: they wait for those of their parents that live, or enter their queues.
local function enter_back()
  local ids = {}
  for i, job in ipairs(came_back) do ids[i] = job[1] end
  local values = has_waits() and hmget(K.waits, ids) or {}
  for i, job in ipairs(came_back) do
    local id, list = job[1], job[4]
    at(job[2])
    if values[i] and reopen(id, tonumber(values[i])) > 0 then
      put_state(id, 'blocked', job[3], 0, NOW, 0, 0, false)
      redis.call('ZADD', K.awaiting, text(list[1]), id)
    else
      enter(list[3], list[1], id, list[5], list[9])
    end
  end
end
