-- @include common.lua
-- @include scheduled.lua
-- declare: schedules are declared.
-- Head: declared: a list of lists [name, version, when, tz, missed, jitter, from, until, paused, again], absent times false.
-- In:  the jobs.
-- Out: the outcomes: created, unknown, same, kept or changed.
-- Invariant: one that a process declares again, and that nobody has removed, was lost with the server's data: it is made anew.

local DECLARED, MOST_FORMER = 90000, 16 -- ms; versions
local now = NOW

local function has(list, version)
  for _, each in ipairs(list) do if each == version then return true end end
  return false
end

local function outcome_of(given, list)
  if not list then return given[10] and redis.call('ZSCORE', K.removedSchedules, given[1]) and 'unknown' or 'created' end
  if list[AS_DECLARED] == given[2] then return 'same' end
  if has(list[FORMER], given[2]) and list[SEEN] + DECLARED > now then return 'kept' end
  return 'changed'
end

local outcomes = {}
for i, given in ipairs(HEAD[5]) do
  local name, job = given[1], ARGV[i + 2]
  local was, job_before = schedule_of(name)
  local outcome = outcome_of(given, was)
  outcomes[i] = outcome
  if outcome == 'unknown' then redis.call('ZADD', K.removedSchedules, text(NOW), name) end
  if outcome == 'same' then
    was[SEEN] = now
    put_schedule(name, was, job_before)
  elseif outcome == 'created' or outcome == 'changed' then
    local list = { given[2], given[3], given[4], given[5], given[6], given[7], given[8], given[9], false, now, now, now, false, {} }
    if was then
      local same_times = was[WHEN] == given[3] and was[TZ] == given[4] and was[FROM] == given[7] and was[UNTIL] == given[8]
      -- A time that is due already fires first.
      if same_times or was[PLANNED] and was[NEXT] and was[NEXT] <= now then list[PLANNED], list[NEXT] = was[PLANNED], was[NEXT] end
      list[PAUSED], list[LAST] = was[PAUSED], was[LAST]
      list[FORMER] = { was[AS_DECLARED] }
      for _, version in ipairs(was[FORMER]) do
        if version ~= given[2] and #list[FORMER] < MOST_FORMER then table.insert(list[FORMER], version) end
      end
    end
    redis.call('ZADD', K.scheduleNames, 0, name)
    redis.call('ZREM', K.removedSchedules, name)
    put_schedule(name, list, job)
  end
end
return outcomes
