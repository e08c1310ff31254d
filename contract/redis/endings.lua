-- What scripts that bring jobs to an end share.

-- Rings if somebody looked a short while ago for a job that is not finished.
local function finished_bell(K, ids)
  if #ids > 0 and recent(redis.call('HGET', K.queue, 'watched')) then ring('finished', ids) end
end

-- Milliseconds that done (or else dead and cancelled) jobs are kept.
local function keep(K, done)
  if done then return tonumber(redis.call('HGET', K.queue, 'keepDone') or 3600000) end
  return tonumber(redis.call('HGET', K.queue, 'keepDead') or 604800000)
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
