-- @include common.lua
-- @include scheduled.lua
-- pause-schedule: a schedule stops firing, or goes on from now.
-- Head: name; paused, true or false.
-- In:  nothing.
-- Out: [known]: 1, or 0 where there is no such schedule.

local name, paused = HEAD[5], HEAD[6]
local list, job = schedule_of(name)
if not list then return { 0 } end
-- One that goes on already keeps its next time.
if list[PAUSED] and not paused then list[PLANNED], list[NEXT] = false, NOW end
list[PAUSED] = paused
put_schedule(name, list, job)
return { 1 }
