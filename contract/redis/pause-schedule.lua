-- @include scheduled.lua
-- pause-schedule: a schedule stops firing, or goes on from now.
-- KEYS: schedules nextFirings
-- In:  now, or nothing for the server's time; name; paused, 1 or 0.
-- Out: [known]: 1, or 0 where there is no such schedule.

local K = { schedules = KEYS[1], next = KEYS[2] }
local now, name, paused = now_of(ARGV[1]), ARGV[2], ARGV[3] == '1'
local list, job = schedule_of(K.schedules, name)
if not list then return { 0 } end
-- One that goes on already keeps its next time.
if list[PAUSED] and not paused then list[PLANNED], list[NEXT] = false, now end
list[PAUSED] = paused
put_schedule(K, name, list, job)
return { 1 }
