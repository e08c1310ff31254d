-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include endings.lua
-- @include grouped.lua
-- @include limits.lua
-- @include log.lua
-- release: claims are given back unstarted.
-- Head: pauses: of each claim, ms for which its group, or the queue, starts no job; nil: all 0. logs: as of `complete`.
-- In:  two items per claim: id, fence.
-- Out: per claim, 0: ok or 1: stale; none of the last ones if the jobs are large: send
--      those again. If the same call may have taken effect before, a job that waits since this very claim is ok.
-- Invariant: the attempt does not count, and the job keeps its place; the fence stays raised. Without a pause the start is given back to
--      the rates.

local pauses, logs = HEAD[5], HEAD[6]
know()
local limits = (Q.limits or pauses) and limits_of(GROUPED)
local outcomes = {}

for i = 1, (#ARGV - 2) / 2 do
  if read_bytes >= LARGE then break end
  local id, fence = ARGV[i * 2 + 1], tonumber(ARGV[i * 2 + 2])
  local state = state_of(id)
  local pause = pauses and pauses[i] or 0
  outcomes[i] = 1
  if state and state[2] == fence and state[1] == 'running' and redis.call('ZREM', K.running, id) == 1 then
    local list = facts_of(id)
    add_total('released')
    if logs then add_log(id, logs[i]) end
    if GROUPED then free_slot(list[5]) end
    if pause > 0 then limits.pause(list[5], pause)
    elseif limits then limits.give_back(list[5], state[5], list[9] or 1) end
    put_state(id, 'waiting', fence, state[3] - 1, state[4], 0, 0, false)
    enter(list[3], list[1], id, list[5], list[9])
    outcomes[i] = 0
  elseif AGAIN and state and state[2] == fence and state[1] == 'waiting' then
    outcomes[i] = 0
  end
end
if limits and limits.changed and not Q.limits then redis.call('HSET', K.queue, 'limits', 'queue') end
flush()
if limits then limits.save() end
return outcomes
