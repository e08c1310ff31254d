-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include endings.lua
-- @include grouped.lua
-- @include limits.lua
-- @include log.lua
-- release: claims are given back unstarted.
-- KEYS: queue jobs states running pages waiting progress limits lines slots groups names blocked touched
-- Head: pauses: of each claim, ms for which its group, or the queue, starts no job; nil: all 0. logs: as of `complete`.
-- In:  two items per claim: id, fence.
-- Out: per claim, 0: ok, 1: stale, or 2: ok, and the pause holds for the whole queue; none of the last ones if the jobs are large: send
--      those again. If the same call may have taken effect before, a job that waits since this very claim is ok.
-- Invariant: the attempt does not count, and the job keeps its place; the fence stays raised. Without a pause the start is given back to
--      the rates.

local K = keys_of('queue jobs states running pages waiting progress limits lines slots groups names blocked touched')
local pauses, logs = HEAD[6], HEAD[7]
local kept = redis.call('HGET', K.queue, 'limits')
GROUPED = kept == 'groups'
local limits = (kept or pauses) and limits_of(K, GROUPED)
local outcomes, released = {}, 0

-- Jobs without a group pause the queue, whose other partitions do not know of it.
local function outcome_of(pause, group) return pause > 0 and not (GROUPED and group) and 2 or 0 end

for i = 1, (#ARGV - 2) / 2 do
  if read_bytes >= LARGE then break end
  local id, fence = ARGV[i * 2 + 1], tonumber(ARGV[i * 2 + 2])
  local state = state_of(K, id)
  local pause = pauses and pauses[i] or 0
  outcomes[i] = 1
  if state and state[2] == fence and state[1] == 'running' then
    local list = facts_of(K, id)
    redis.call('ZREM', K.running, id)
    released = released + 1
    if logs then add_log(K, id, logs[i]) end
    if GROUPED then free_slot(list[5]) end
    if pause > 0 then limits.pause(list[5], pause)
    elseif limits then limits.give_back(list[5], state[5], list[9] or 1) end
    put_state(K, id, 'waiting', fence, state[3] - 1, state[4], 0, 0, false)
    enter(list[3], list[1], id, list[5], list[9])
    outcomes[i] = outcome_of(pause, list[5])
  elseif AGAIN and state and state[2] == fence and state[1] == 'waiting' then
    outcomes[i] = outcome_of(pause, facts(redis.call('HGET', K.jobs, id))[5])
  end
end
if GROUPED then freed_slots(K) end
count_total(K, 'released', released)
if entered(K) then wake(K) end
if limits and limits.changed and not kept then redis.call('HSET', K.queue, 'limits', 'queue') end
if limits then limits.save() end
return outcomes
