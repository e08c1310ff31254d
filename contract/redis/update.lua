-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include endings.lua
-- @include changed.lua
-- update: scheduled and waiting jobs change.
-- KEYS: queue jobs states scheduled pages waiting lines slots groups touched @due
-- Head: nothing further.
-- In:  three items per job: id; MessagePack of [priority, delay, runAt], each nil where it stays; the encoded data, or nothing.
-- Out: per job, -1: unknown here; 0: changed; 1: running, 2: done, 3: dead, 4: cancelled, and not changed. None of the last ones if the
--      jobs are large: send those again.
-- Invariant: a job keeps its place, also among jobs of another priority.

local K = keys_of('queue jobs states scheduled pages waiting lines slots groups touched @due')
local _, limits = keep(K, false)
local outcomes = {}

for i = 3, #ARGV, 3 do
  if read_bytes >= LARGE then break end
  outcomes[#outcomes + 1] = change(K, ARGV[i], cmsgpack.unpack(ARGV[i + 1]), ARGV[i + 2])
end
settle(K)
if moved then note_due(K) end
if came or due_soon then wake(K, limits) elseif moved and limits then freed_bell(K) end
return outcomes
