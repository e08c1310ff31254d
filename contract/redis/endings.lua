-- What scripts that bring jobs to an end share.

-- Rings if somebody looked a short while ago for a job that is not finished.
local function finished_bell(K, ids)
  if #ids > 0 and recent(redis.call('HGET', K.queue, 'watched')) then ring('finished', ids) end
end

-- @return ms that done (or else dead and cancelled) jobs are kept; whether the queue has or had limits
local function keep(K, done)
  local settings = redis.call('HMGET', K.queue, done and 'keepDone' or 'keepDead', 'limits')
  GROUPED = settings[2] == 'groups'
  return tonumber(settings[1]) or done and DEFAULT.keepDone or DEFAULT.keepDead, settings[2]
end

-- Jobs of a grouped queue that run no more. Use: `free_slot` each, then `freed_slots` once.
local freed = {}
local function free_slot(group)
  freed[group or ''] = (freed[group or ''] or 0) + 1
end

local function freed_slots(K)
  local names, counts, touched = {}, {}, {}
  for name in pairs(freed) do names[#names + 1] = name end
  if #names == 0 then return end
  local slots, blocked = hmget(K.slots, names), redis.call('SMISMEMBER', K.blocked, unpack(names))
  for i, name in ipairs(names) do
    counts[#counts + 1], counts[#counts + 2] = name, text(math.max(0, (tonumber(slots[i]) or 0) - freed[name]))
    if blocked[i] == 1 then touched[#touched + 1] = name end
  end
  call('HSET', K.slots, counts)
  call('SADD', K.touched, touched)
end

-- Jobs of a queue with limits run no more. Rings where others may start instead.
local function freed_bell(K)
  if tonumber(redis.call('HGET', K.queue, 'waiting') or 0) > 0 then wake(K, true) end
end

-- Jobs that are kept no longer. Needs links.lua.
local function forget(K, ids)
  if #ids == 0 then return end
  forget_links(K, ids)
  call('HDEL', K.jobs, ids)
  call('HDEL', K.states, ids)
  for _, key in ipairs({ K.results, K.errors }) do
    if redis.call('EXISTS', key) == 1 then call('HDEL', key, ids) end
  end
  if redis.call('EXISTS', K.progress) == 0 then return end
  local logs = {}
  for i = 1, #ids do logs[i] = ids[i] .. 'l' end
  call('HDEL', K.progress, ids)
  call('HDEL', K.progress, logs)
end
