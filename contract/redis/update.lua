-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include endings.lua
-- update: scheduled and waiting jobs change.
-- KEYS: queue jobs states scheduled pages waiting lines slots groups touched @due
-- Head: nothing further.
-- In:  three items per job: id; MessagePack of [priority, delay, runAt], each nil where it stays; the encoded data, or nothing.
-- Out: per job, -1: unknown here; 0: changed; 1: running, 2: done, 3: dead, 4: cancelled, and not changed. None of the last ones if the
--      jobs are large: send those again.
-- Invariant: a job keeps its place, also among jobs of another priority.

local K = keys_of('queue jobs states scheduled pages waiting lines slots groups touched @due')
local UNCHANGED = { running = 1, done = 2, dead = 3, cancelled = 4 }
local _, limits = keep(K, false)
local outcomes, moved, came, soon, entering_ids = {}, false, false, false, {}

-- Those that begin to wait are in their pages only after this.
local function settle()
  came = entered(K) or came
  entering_ids = {}
end

local function change(id, change_of, data)
  local record = redis.call('HGET', K.jobs, id)
  if not record then return -1 end
  local state = state_of(K, id) or NEW_STATE
  if UNCHANGED[state[1]] then return UNCHANGED[state[1]] end
  read_bytes = read_bytes + #record
  if entering_ids[id] then settle() end
  may_write(K)
  local at, list = cmsgpack.unpack_one(record)
  local priority, delay, run_at = change_of[1], change_of[2], change_of[3]
  local was_waiting, before = state[1] == 'waiting', list[3]
  list[3] = priority or before
  if priority or data ~= '' then
    redis.call('HSET', K.jobs, id, cmsgpack.pack(list) .. (data ~= '' and data or string.sub(record, at + 1)))
  end
  if not (delay or run_at or was_waiting and priority) then return 0 end
  moved = true
  if was_waiting then leave(K, before, list[1], id, list[5], list[9]) end
  local becomes, due = state[1], state[4]
  if delay or run_at then
    due = math.min(math.max(NOW, run_at or NOW + delay), SPAN - 1)
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
  return 0
end

for i = 3, #ARGV, 3 do
  if read_bytes >= LARGE then break end
  outcomes[#outcomes + 1] = change(ARGV[i], cmsgpack.unpack(ARGV[i + 1]), ARGV[i + 2])
end
settle()
if moved then note_due(K) end
if came or soon then wake(K, limits) elseif moved and limits then freed_bell(K) end
return outcomes
