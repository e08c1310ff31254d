-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include endings.lua
-- @include changed.lua
-- update: scheduled, waiting and blocked jobs change.
-- Head: nothing further.
-- In:  three items per job: id; MessagePack of [priority, delay, runAt], each nil where it stays; the encoded data, or nothing.
-- Out: per job, -1: unknown; 1: running, 2: done, 3: dead, 4: cancelled, and not changed; else the name of its queue: changed. None of the
--      last ones if the jobs are large: send those again.
-- Invariant: a job keeps its place, also among jobs of another priority.

local UNCHANGED = { running = 1, done = 2, dead = 3, cancelled = 4 }
local outcomes = {}

local function change(id, change_of, data)
  local record = visit(id)
  if not record then return -1 end
  local state = state_of(id) or NEW_STATE
  if UNCHANGED[state[1]] then return UNCHANGED[state[1]] end
  change_one(id, record, state, change_of, data)
  return QUEUE
end

for i = 3, #ARGV, 3 do
  if read_bytes >= LARGE then break end
  outcomes[#outcomes + 1] = change(ARGV[i], cmsgpack.unpack(ARGV[i + 1]), ARGV[i + 2])
end
flush()
return outcomes
