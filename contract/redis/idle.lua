-- What scripts that look for queues which nobody uses share.

local IDLE_FOR = 3600000 -- ms for which sweeps must have found a partition idle before it is removed

-- Without a job in any state, and with each setting at its default.
local function is_idle(K)
  if redis.call('EXISTS', K.jobs) == 1 then return false end
  local set = redis.call('HMGET', K.queue, 'capacity', 'keepDone', 'keepDead', 'paused', 'attempts', 'backoff', 'lease', 'timeout', 'limits', 'operator')
  if set[9] == 'groups' then return false end
  if set[9] and (redis.call('HEXISTS', K.limits, 'running') == 1 or redis.call('HEXISTS', K.limits, 'rate') == 1) then return false end
  return not set[1] and tonumber(set[2] or 3600000) == 3600000 and tonumber(set[3] or 604800000) == 604800000 and set[4] ~= '1'
    and tonumber(set[5] or 10) == 10 and not set[6] and tonumber(set[7] or 30000) == 30000 and not set[8]
    and not set[10]
end
