-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- release: claims are given back unstarted.
-- KEYS: queue jobs states running pages waiting
-- Head: nothing further.
-- In:  two items per claim: id, fence.
-- Out: per claim, 0: ok or 1: stale. If the same call may have taken effect before, a job that waits since this very claim is ok.
-- Invariant: the attempt does not count, and the job keeps its place; the fence stays raised.

local K = keys_of('queue jobs states running pages waiting')
local outcomes = {}
for i = 1, (#ARGV - 2) / 2 do
  local id, fence = ARGV[i * 2 + 1], tonumber(ARGV[i * 2 + 2])
  local state = state_of(K, id)
  outcomes[i] = 1
  if state and state[2] == fence and state[1] == 'running' then
    local list = facts(redis.call('HGET', K.jobs, id))
    redis.call('ZREM', K.running, id)
    put_state(K, id, 'waiting', fence, state[3] - 1, state[4], 0, 0, false)
    enter(list[3], list[1], id)
    outcomes[i] = 0
  elseif AGAIN and state and state[2] == fence and state[1] == 'waiting' then
    outcomes[i] = 0
  end
end
if entering_count > 0 then
  entered(K)
  wake(K)
end
return outcomes
