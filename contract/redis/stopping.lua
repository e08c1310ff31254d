-- What scripts share that cancel or remove: live jobs leave their queue. Needs once.lua, endings.lua, graph.lua.

-- @return whether it ran
local function stop(id, state, list)
  unkey(id, list)
  note_ended(id)
  -- A job that waited may have been the one that a rate or a limit held, and others behind it.
  Q.stirs = true
  if state == 'running' then
    redis.call('ZREM', K.running, id)
    if GROUPED then free_slot(list[5]) end
    Q.ran = Q.ran or {}
    Q.ran[#Q.ran + 1] = id
    return true
  end
  Q.left = true
  if Q.steps then redis.call('HDEL', K.parked, id) end
  if state == 'scheduled' then
    redis.call('ZREM', K.scheduled, id)
    Q.moves = true
  elseif state == 'blocked' then redis.call('ZREM', K.awaiting, id)
  else leave(list[3], list[1], id, list[5], list[9]) end
  return false
end

-- A live job of the queue is cancelled. failure: what is kept as its error, or nil. @return whether it ran
local function cancel_one(id, state, list, failure)
  may_write()
  local has_run = stop(id, state[1], list)
  add_total('cancelled')
  end_parent(id, CANCELLED)
  if Q.keep_dead == 0 then
    forget({ id })
  else
    if failure then redis.call('HSET', K.errors, id, failure) end
    put_state(id, 'cancelled', state[2], state[3], state[8] or state[4], state[5], NOW, state[7])
    redis.call('ZADD', K.cancelled, NOW, id)
    note_end(NOW + Q.keep_dead)
  end
  return has_run
end

-- A job of the queue goes. @return 1: it was finished, 2: it waited, was scheduled or blocked, 3: it ran
local function remove_one(id, state, list)
  may_write()
  Q.highest_removed = math.max(Q.highest_removed or 0, state[2])
  local outcome = 1
  if state[1] == 'done' or state[1] == 'dead' or state[1] == 'cancelled' then
    redis.call('ZREM', K[state[1]], id)
    forget_key(id, list)
  else
    outcome = stop(id, state[1], list) and 3 or 2
    end_parent(id, REMOVED)
  end
  forget({ id })
  return outcome
end

-- Jobs of the same ids may be pushed again: their fences are above those of the jobs that were removed.
local function raise_floors()
  for i = 1, #order do
    at(order[i].name)
    local run = Q.highest_removed and redis.call('HGET', K.queue, 'run')
    if run and Q.highest_removed > tonumber(string.sub(run, 33)) then
      redis.call('HSET', K.queue, 'run', string.sub(run, 1, 32) .. text(Q.highest_removed))
    end
  end
end
