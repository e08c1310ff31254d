-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include graph.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- @include settle.lua
-- @include back.lua
-- @include changed.lua
-- @include ordered.lua
-- @include filter.lua
-- bulk: one change to the jobs of a state that pass a filter, a step at a time.
-- Head: state, limit, after, filter: as of list; change: requeue, cancel,
--       remove, update; most: changes so many jobs at most, 0: only counts; until: only jobs that were in the state at this time, nil: all;
--       priority, runAt: of an update, each nil where it stays.
-- In:  the id of the job of `after`.
-- Out: [looked, matched, changed, now, more], if more is 1 also [priority, place, time, id] of the job where the look ended, as list takes
--      them, and of a count the ids of the first ones that passed, at most ten.
-- Invariant: looks at `limit` jobs at most, and changes them in the same call. An update passes over jobs that are as it would make them.

local filter, change, most, until_time, priority, run_at = HEAD[8] or {}, HEAD[9], HEAD[10], HEAD[11], HEAD[12], HEAD[13]
know()
local is_final = NEWEST_FIRST[state]
local filters_record = filter.group or filter.key or filter.pushedFrom or filter.pushedBefore or filter.text or filter.data
local filters_error = filter.errorCode or filter.errorText
-- The others of a final state come later in the list, and ended earlier.
local is_past = not until_time
local MOST_SAMPLED = 10
local FEW = 100 -- errors that are read in one command

-- Whether it was in the state at `until`.
local function was_there(id, list)
  if is_past then return true end
  local at = state_of(id) or NEW_STATE
  if is_final then
    is_past = at[6] < until_time
    return is_past or at[6] == until_time and (at[4] > 0 and at[4] or list[2]) < until_time
  end
  return list[2] <= until_time and (at[5] == 0 or at[5] < until_time or state == 'running' and at[5] == until_time)
end

local function is_as_updated(id, list)
  if priority and priority ~= list[3] then return false end
  local at = state_of(id) or NEW_STATE
  local due = at[4] > 0 and at[4] or list[2]
  return not run_at or due == run_at or state == 'waiting' and run_at <= NOW
end

local function passes(id, failure)
  if filters_error and not error_passes(filter, failure) then return false end
  if not filters_record and is_past and change ~= 'update' then return true end
  local record = record_of(id)
  if filters_record and not record_passes(filter, record) then return false end
  local list = facts(record)
  return was_there(id, list) and not (change == 'update' and is_as_updated(id, list))
end

local APPLY = {
  requeue = function(id, at, record) return send_back(id, at, (facts(record))) end,
  cancel = function(id, at, record)
    cancel_one(id, at, (facts(record)))
    return true
  end,
  remove = function(id, at, record)
    remove_one(id, at, (facts(record)))
    return true
  end,
  update = function(id, at, record)
    change_one(id, record, at, { priority, nil, run_at }, '')
    return true
  end,
}

local ids, found, looked, errors = ids_of_page(), {}, 0, {}
for i = 1, #ids do
  looked = i
  local at = (i - 1) % FEW + 1
  if filters_error and at == 1 then errors = hmget(K.errors, { unpack(ids, i, math.min(i + FEW - 1, #ids)) }) end
  if passes(ids[i], errors[at]) then found[#found + 1] = ids[i] end
  if read_bytes >= LARGE or most > 0 and #found >= most then break end
end
local out = { looked, #found, 0, NOW, 0 }
local last = ids[looked]
if last and (looked < #ids or #ids == limit) then
  local list = facts(redis.call('HGET', K.jobs, last))
  local time = state == 'waiting' and 0 or redis.call('ZSCORE', set_of(state), last)
  out[5], out[6], out[7], out[8], out[9] = 1, list[3], list[1], tonumber(time), last
end
if most == 0 then
  for i = 1, math.min(#found, MOST_SAMPLED) do out[#out + 1] = found[i] end
  return out
end
local changed = 0
for i = 1, #found do
  local id = found[i]
  if APPLY[change](id, state_of(id) or NEW_STATE, redis.call('HGET', K.jobs, id)) then changed = changed + 1 end
end
out[3] = changed
if change == 'requeue' then enter_back() end
settle()
flush()
raise_floors()
return out
