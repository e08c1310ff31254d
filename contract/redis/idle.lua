-- What scripts that look for queues which nobody uses share.

-- Without a job in any state, and with each setting at its default.
local function is_idle(K)
  if redis.call('EXISTS', K.jobs) == 1 then return false end
  local set = redis.call('HMGET', K.queue, 'capacity', 'keepDone', 'keepDead', 'paused')
  return not set[1] and tonumber(set[2] or 3600000) == 3600000 and tonumber(set[3] or 604800000) == 604800000 and set[4] ~= '1'
end
