-- What scripts share that cancel or remove: live jobs leave their queue. Use: `stop` each, then `stopped_all` once.
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
  elseif state == 'blocked' then
    redis.call('ZREM', K.awaiting, id)
    local value = redis.call('HGET', K.parents, id)
    redis.call('HSET', K.parents, id, string.sub(value, 1, 17) .. '\0\0\0' .. string.sub(value, 21))
    undecided_ids[id] = redis.call('ZSCORE', K.graphs, string.sub(value, 2, 17)) and true
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

-- A live job is cancelled. kept: ms for which it is kept. Use: `cancel_one` each, then `cancelled_all` once. @return whether it ran
local cancelled_count = 0
local function cancel_one(K, id, state, list, kept)
  may_write(K)
  local has_run = stop(K, id, state[1], list)
  cancelled_count = cancelled_count + 1
  end_parent(K, id, CANCELLED)
  if kept == 0 then
    forget(K, { id })
  else
    put_state(K, id, 'cancelled', state[2], state[3], state[8] or state[4], state[5], NOW, state[7])
    redis.call('ZADD', K.cancelled, NOW, id)
  end
  return has_run
end

local function cancelled_all(K, kept, limits)
  if cancelled_count > 0 and kept > 0 then note_end(K, NOW + kept) end
  count_total(K, 'cancelled', cancelled_count)
  stopped_all(K, limits)
end

-- A job goes. list(): its facts, which those of a live one alone are read for. as: how its children see it, REMOVED unless given. Use:
-- `remove_one` each, then `removed_all` once.
-- @return 1: it was finished, 2: it waited or was scheduled, 3: it ran
local removed, highest_removed = {}, 0
local function remove_one(K, id, state, list, as)
  may_write(K)
  highest_removed = math.max(highest_removed, state[2])
  local outcome = 1
  if state[1] == 'done' or state[1] == 'dead' or state[1] == 'cancelled' then
    redis.call('ZREM', K[state[1]], id)
    if redis.call('EXISTS', K.keys) == 1 then forget_key(K, id, list()) end
  else
    outcome = stop(K, id, state[1], list()) and 3 or 2
    if as then undecided_ids[id] = nil end
    end_parent(K, id, as or REMOVED)
  end
  removed[#removed + 1] = id
  return outcome
end

local function removed_all(K, limits)
  forget(K, removed)
  stopped_all(K, limits)
  local run = redis.call('HGET', K.queue, 'run')
  if run and highest_removed > tonumber(string.sub(run, 33)) then
    redis.call('HSET', K.queue, 'run', string.sub(run, 1, 32) .. text(highest_removed))
  end
end
