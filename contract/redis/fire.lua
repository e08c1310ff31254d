-- @include common.lua
-- @include version.lua
-- @include waiting.lua
-- @include run.lua
-- @include new-queue.lua
-- @include endings.lua
-- @include pushes.lua
-- @include scheduled.lua
-- fire: moves the next time of schedules on, and pushes their jobs.
-- Head: as of `push`, with the jobs of all firings in their order; then firings: a list of lists [name, version, expected, next, count],
--       next false: never again; count: how many of the jobs are its own.
-- In:  as of `push`.
-- Out: [made, fate…, outcome…]. made: as of `push`. fate: per firing, 0: stale, 1: fired, 2: its queue has no room, and nothing changed.
--      outcome: as of `push`, of each job of the firings that fired; 0 for those of others. If the same call may have taken effect before,
--      a
--      stale firing of which a job is there was this call's.
-- Invariant: of the calls that expect the same time, one fires.

local ids, fates, outcomes, taken = ids_in(ARGV[3]), {}, { 0 }, {}
local queues, of, sizes, first, data_at = HEAD[8], HEAD[9], HEAD[7], 1, 1

local function fire(item, list, job, last)
  if last >= first then
    enter_queue(queues[of and of[first] or 1])
    if Q.room < last - first + 1 then return 2 end
    list[LAST] = NOW
  end
  list[PLANNED], list[NEXT] = true, item[4]
  put_schedule(item[1], list, job)
  push_jobs(ids, first, last, outcomes, taken, data_at)
  return 1
end

for i, item in ipairs(HEAD[10]) do
  local last = first + item[5] - 1
  local list, job = schedule_of(item[1])
  for j = first, last do outcomes[j + 1] = 0 end
  if list and not list[PAUSED] and list[AS_DECLARED] == item[2] and list[NEXT] == item[3] then
    fates[i] = fire(item, list, job, last)
  else
    fates[i] = AGAIN and last >= first and redis.call('HEXISTS', K.jobs, ids[first]) or 0
  end
  for j = first, last do data_at = data_at + sizes[j] end
  first = last + 1
end
local out = { pushed() }
flush()
for i = 1, #fates do out[i + 1] = fates[i] end
for i = 1, #ids do out[#fates + 1 + i] = outcomes[i + 1] end
return out
