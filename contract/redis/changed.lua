-- What scripts that change scheduled and waiting jobs share. Use: `change` each, then `settle` once, and ring by what is told here.
-- Needs the keys: queue jobs states scheduled pages waiting lines slots groups touched.

local UNCHANGED = { running = 1, done = 2, dead = 3, cancelled = 4 }
-- Whether a due time or a line changed; whether a job waits now; whether one is due soon.
local moved, came, due_soon, entering_ids = false, false, false, {}

-- Those that begin to wait are in their pages only after this.
local function settle(K)
  came = entered(K) or came
  entering_ids = {}
end

-- @return -1: unknown; 0: changed; else as UNCHANGED has it
local function change(K, id, change_of, data)
  local record = redis.call('HGET', K.jobs, id)
  if not record then return -1 end
  local state = state_of(K, id) or NEW_STATE
  if UNCHANGED[state[1]] then return UNCHANGED[state[1]] end
  read_bytes = read_bytes + #record
  if entering_ids[id] then settle(K) end
  may_write(K)
  local at, list = cmsgpack.unpack_one(record)
  local priority, delay, run_at = change_of[1], change_of[2], change_of[3]
  local was_waiting, before = state[1] == 'waiting', list[3]
  list[3] = priority or before
  if priority or data ~= '' then
    redis.call('HSET', K.jobs, id, cmsgpack.pack(list) .. (data ~= '' and data or string.sub(record, at + 1)))
  end
  if state[8] and (delay or run_at) then
    -- A follower: from when it may start.
    put_state(K, id, state[1], state[2], state[3], state[4], state[5], 0, state[7], math.max(NOW, run_at or NOW + delay))
    return 0
  end
  if not (delay or run_at or was_waiting and priority) then return 0 end
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
    due_soon = due_soon or due < NOW + SOON
  else
    if not was_waiting then redis.call('ZREM', K.scheduled, id) end
    enter(list[3], list[1], id, list[5], list[9])
    entering_ids[id] = true
  end
  return 0
end
