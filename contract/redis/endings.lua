-- What scripts that bring jobs to an end share.

-- Rings if somebody looked a short while ago for a job that is not finished.
local function finished_bell(K, ids)
  if #ids > 0 and recent(redis.call('HGET', K.queue, 'watched')) then ring('finished', ids) end
end

-- @return ms that done (or else dead and cancelled) jobs are kept; whether the queue has or had limits
local function keep(K, done)
  local settings = redis.call('HMGET', K.queue, done and 'keepDone' or 'keepDead', 'limits')
  GROUPED = settings[2] == 'groups'
  return tonumber(settings[1] or done and 3600000 or 604800000), settings[2]
end

-- A job of a grouped queue runs no more.
local function free_slot(K, group)
  if redis.call('HINCRBY', K.slots, group or '', -1) <= 0 then redis.call('HDEL', K.slots, group or '') end
  redis.call('SADD', K.touched, group or '')
end

-- Jobs of a queue with limits run no more. Rings where others may start instead.
local function freed_bell(K)
  if tonumber(redis.call('HGET', K.queue, 'waiting') or 0) > 0 then wake(K, true) end
end

-- Jobs that are kept no longer.
local function forget(K, ids)
  if #ids == 0 then return end
  call('HDEL', K.jobs, ids)
  call('HDEL', K.states, ids)
  for _, key in ipairs({ K.results, K.progress, K.errors }) do
    if redis.call('EXISTS', key) == 1 then call('HDEL', key, ids) end
  end
  -- The next sweep is to see that it is idle.
  if redis.call('EXISTS', K.jobs) == 0 then note_end(K, NOW) end
end
