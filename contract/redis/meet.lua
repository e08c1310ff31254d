-- What a push with `once` does where a live job has its key. Needs the keys of changed.lua, keys and @due.

local STAGED = false -- stage.lua sets it: nothing is replaced before it is decided

-- @return the id of the job that has the key; or that of the one that was replaced, and `r`; or nil, true: the push is to follow it
MEET = function(K, key, holder, value, data, limits)
  local once = value[10]
  local replace, max_wait, follow = once[2], once[3], once[4]
  local is_running = (state_of(K, holder) or NEW_STATE)[1] == 'running'
  local follower = (replace or follow) and redis.call('HGET', K.keys, '\0' .. key)
  local replaced = follower or replace and not is_running and holder
  if not replaced then
    if follow and is_running then return nil, true end
    return holder, false
  end
  if STAGED then return replaced .. 'r', false end
  local due = value[3] or NOW + (value[2] or 0)
  if max_wait then due = math.min(due, facts_of(K, replaced)[2] + max_wait) end
  local record = redis.call('HGET', K.jobs, replaced)
  change_one(K, replaced, record, state_of(K, replaced) or NEW_STATE, { nil, nil, due }, data)
  changed_all(K, limits)
  moved, came, soon = false, false, false
  return replaced .. 'r', false
end
