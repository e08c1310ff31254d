-- @include common.lua
-- @include version.lua
-- @include waiting.lua
-- @include run.lua
-- @include new-queue.lua
-- @include endings.lua
-- @include pushes.lua
-- push: stores jobs.
-- Head: values: a list of lists [priority, delay, runAt, attempts, timeout, group, key, trace, cost], each nil where absent; cost: nil: 1.
--       which: of each job, which of them are its own, from 1; nil: those of all are the first. sizes: of each job, how many bytes its
--       encoded data has. queues: names; of: of each job, which is its queue, from 1; nil: that of all is the first.
-- In:  the ids, one after the other; the encoded data of all jobs, one after the other.
-- Out: [made, outcome…]. made: 1 where a queue came into being, so that the client sends the settings that it has made for it. outcome:
--      0 pushed, 1 full, the id of the existing job; none at all if every job was pushed. If the same call may have taken effect before, a
--      job that is there under its own id was pushed.
-- Invariant: places follow the order of pushes. The first write may take memory: a server without any refuses the push whole.

local ids, out = ids_in(ARGV[3]), { 0 }
local all_pushed = push_jobs(ids, 1, #ids, out, {}, 1)
out[1] = pushed()
flush()
return all_pushed and { out[1] } or out
