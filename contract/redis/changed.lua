-- What update, bulk and push-once share: scheduled, waiting and blocked jobs change. Use: `change_one` each, then `changed_all` once.
local moved, came, soon, entering_ids = false, false, false, {}

-- Those that begin to wait are in their pages only after this.
local function settle(K)
  came = entered(K) or came
  entering_ids = {}
end

-- change: [priority, delay, run_at], each nil where it stays; data: encoded, or the empty text.
local function change_one(K, id, record, state, change, data)
  if entering_ids[id] then settle(K) end
  may_write(K)
  local at, list = cmsgpack.unpack_one(record)
  local priority, delay, run_at = change[1], change[2], change[3]
  local was_waiting, before = state[1] == 'waiting', list[3]
  list[3] = priority or before
  if priority or data ~= '' then
    redis.call('HSET', K.jobs, id, cmsgpack.pack(list) .. (data ~= '' and data or string.sub(record, at + 1)))
  end
  if state[8] and (delay or run_at) then
    -- A follower: from when it may start.
    put_state(K, id, state[1], state[2], state[3], state[4], state[5], 0, state[7], math.max(NOW, run_at or NOW + delay))
    return
  end
  if not (delay or run_at or was_waiting and priority) then return end
  if state[1] == 'blocked' then
    local due = math.min(math.max(NOW, run_at or NOW + delay), NEVER - 1)
    put_state(K, id, 'blocked', state[2], state[3], due, state[5], 0, state[7])
    return
  end
  moved = true
  if was_waiting then leave(K, before, list[1], id, list[5], list[9]) end
  local becomes, due = state[1], state[4]
  if delay or run_at then
    due = math.min(math.max(NOW, run_at or NOW + delay), NEVER - 1)
    becomes = due > NOW and 'scheduled' or 'waiting'
    put_state(K, id, becomes, state[2], state[3], due, state[5], 0, state[7])
  end
  if becomes == 'scheduled' then
    redis.call('ZADD', K.scheduled, text(due), id)
    soon = soon or due < NOW + SOON
  else
    if not was_waiting then redis.call('ZREM', K.scheduled, id) end
    enter(list[3], list[1], id, list[5], list[9])
    entering_ids[id] = true
  end
end

-- limits: the queue has or had any.
local function changed_all(K, limits)
  settle(K)
  if moved then note_due(K) end
  if came or soon then wake(K, limits) elseif moved and limits then freed_bell(K) end
end
