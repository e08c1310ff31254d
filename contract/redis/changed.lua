-- What update, bulk and push-full share: scheduled, waiting and blocked jobs change. Needs waiting.lua, endings.lua.

-- change: [priority, delay, run_at], each nil where it stays; data: encoded, or the empty text.
local function change_one(id, record, state, change, data)
  -- Jobs that begin to wait are in their pages only after this.
  if Q.entering then Q.soon = entered() or Q.soon end
  may_write()
  local list, size = facts(record)
  local priority, delay, run_at = change[1], change[2], change[3]
  local was_waiting, before = state[1] == 'waiting', list[3]
  list[3] = priority or before
  if priority or data ~= '' then
    local head = string.sub(record, 1, 1 + string.byte(record)) .. cmsgpack.pack(list)
    redis.call('HSET', K.jobs, id, head .. (data ~= '' and data or string.sub(record, size + 1)))
  end
  if state[8] and (delay or run_at) then
    -- A follower: from when it may start.
    put_state(id, state[1], state[2], state[3], state[4], state[5], 0, state[7], math.max(NOW, run_at or NOW + delay))
    return
  end
  if not (delay or run_at or was_waiting and priority) then return end
  if state[1] == 'blocked' then
    local due = math.min(math.max(NOW, run_at or NOW + delay), NEVER - 1)
    put_state(id, 'blocked', state[2], state[3], due, state[5], 0, state[7])
    return
  end
  Q.moves, Q.stirs = true, true
  if was_waiting then leave(before, list[1], id, list[5], list[9]) end
  local becomes, due = state[1], state[4]
  if delay or run_at then
    due = math.min(math.max(NOW, run_at or NOW + delay), NEVER - 1)
    becomes = due > NOW and 'scheduled' or 'waiting'
    put_state(id, becomes, state[2], state[3], due, state[5], 0, state[7])
  end
  if becomes == 'scheduled' then
    redis.call('ZADD', K.scheduled, text(due), id)
    Q.soon = Q.soon or due < NOW + SOON
  else
    if not was_waiting then redis.call('ZREM', K.scheduled, id) end
    enter(list[3], list[1], id, list[5], list[9])
  end
end
