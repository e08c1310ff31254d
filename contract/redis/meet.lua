-- What a push with `once` does where a live job has its key. Needs the files of changed.lua.

-- @return `existing`, `replaced` or `follows`; and the id of the job that was met
local function met_by(key, holder, once)
  local replace, follow = once[2], once[4]
  local is_running = (state_of(holder) or NEW_STATE)[1] == 'running'
  local follower = (replace or follow) and redis.call('HGET', K.keys, '\0' .. key)
  if follower or replace and not is_running then return 'replaced', follower or holder end
  if follow and is_running then return 'follows', nil end
  return 'existing', holder
end

-- @return as `met_by`, after the job that is replaced has changed
MEET = function(key, holder, value, data)
  local how, id = met_by(key, holder, value[10])
  if how ~= 'replaced' then return how, id end
  local record = record_of(id)
  local due, max_wait = value[3] or NOW + (value[2] or 0), value[10][3]
  if max_wait then due = math.min(due, facts(record)[2] + max_wait) end
  change_one(id, record, state_of(id) or NEW_STATE, { nil, nil, due }, data)
  return how, id
end
