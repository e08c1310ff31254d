-- What cancel and remove share: live jobs leave their queue. Use: `stop` each, then `stopped_all` once.
local stopped, ran, waited = {}, {}, false

-- @return whether it ran
local function stop(K, id, state, list)
  unkey(K, id, list)
  stopped[#stopped + 1] = id
  if state == 'running' then
    redis.call('ZREM', K.running, id)
    if GROUPED then free_slot(list[5]) end
    ran[#ran + 1] = id
    return true
  end
  waited = true
  if state == 'scheduled' then redis.call('ZREM', K.scheduled, id)
  else leave(K, list[3], list[1], id, list[5], list[9]) end
  return false
end

-- limits: the queue has or had any.
local function stopped_all(K, limits)
  if GROUPED then freed_slots(K) end
  if waited then note_due(K) end
  if #ran > 0 then ring('cancelled', ran) end
  -- A job that waited may have been the one that a rate or a limit held, and others behind it.
  if limits and #stopped > 0 then freed_bell(K) end
  if waited then roomy(K) end
  finished_bell(K, stopped)
end
