-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include graph.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- @include settle.lua
-- @include linking.lua
-- @include grouped.lua
-- @include limits.lua
-- @include journals.lua
-- @include log.lua
-- @include parking.lua
-- release: claims are given back unstarted, or their jobs are parked.
-- Head: pauses: of each claim, ms for which its group, or the queue, starts no job; nil: all 0. logs: as of `complete`. parks: nil, or of
--      each claim false or a list [until, signals, count, reason]; until: false where there is none; count: how many entries it has.
-- In:  two items per claim: id, fence. Behind those, of each park in their order: the ids of `after`, each once, one after the other; then
--      the entries, as of `journal`.
-- Out: per claim, 0: ok, 1: stale or 2: full; none of the last ones if the jobs or the entries are large: send
--      those again. If the same call may have taken effect before, a job that waits since this very claim is ok.
-- Invariant: the attempt does not count, and the job keeps its place; the fence stays raised. Without a pause the start is given back to
--      the rates; that of a job that is parked is not.

local pauses, logs, parks = HEAD[5], HEAD[6], HEAD[7]
local count = parks and #parks or (#ARGV - 2) / 2
know()
local limits = (Q.limits or pauses) and limits_of(GROUPED)
local outcomes, next_item = {}, 3 + 2 * count

for i = 1, count do
  if read_bytes >= LARGE then break end
  local id, fence = ARGV[i * 2 + 1], tonumber(ARGV[i * 2 + 2])
  local state, park = state_of(id), parks and parks[i]
  local pause = pauses and pauses[i] or 0
  local is_own = state and state[2] == fence
  outcomes[i] = 1
  if is_own and park and state[1] == 'running' then
    outcomes[i] = park_one(id, state, park, next_item, logs and logs[i])
  elseif is_own and state[1] == 'running' and redis.call('ZREM', K.running, id) == 1 then
    local list = facts_of(id)
    add_total('released')
    if logs then add_log(id, logs[i]) end
    if GROUPED then free_slot(list[5]) end
    if pause > 0 then limits.pause(list[5], pause)
    elseif limits then limits.give_back(list[5], state[5], list[9] or 1) end
    put_state(id, 'waiting', fence, state[3] - 1, state[4], 0, 0, false)
    enter(list[3], list[1], id, list[5], list[9])
    outcomes[i] = 0
  elseif AGAIN and is_own and (state[1] == 'waiting' or park and (state[1] == 'scheduled' or state[1] == 'blocked')) then
    outcomes[i] = 0
  end
  if park then next_item = next_item + 1 + 2 * park[3] end
end
if limits and limits.changed and not Q.limits then redis.call('HSET', K.queue, 'limits', 'queue') end
flush()
if limits then limits.save() end
return outcomes
