-- @include common.lua
-- @include waiting.lua
-- @include run.lua
-- @include undecided.lua
-- @include pushes.lua
-- push: stores jobs.
-- KEYS: queue jobs states keys scheduled pages waiting lines touched awaiting parents graphs staged @due
-- Head: floor: as `register` gave it, from whoever has registered the queue and does not know yet whether the partition is `listed`; else
--      nil.
--       values: a list of lists [priority, delay, runAt, attempts, timeout, group, key, trace, cost], each nil where absent; cost: nil: 1.
--       With a tenth entry, `once`, it is a call of push-once.lua.
--       which: of each job, which of them are its own, from 1; nil: those of all are the first. sizes: of each job, how many bytes its
--       encoded data has. partitions: how many the queue has, as the caller knows it.
-- In:  the ids, one after the other; the encoded data of all jobs, one after the other.
-- Out: [listed, outcome…]. outcome: 0 pushed, 1 full, the id of the existing job, or of one whose graph is not decided: `held`, the graph
--      and the part that decides, a list; none at all if every job was pushed. If the same call
--      may have taken effect before, a job that is there under its own id was pushed. listed: 0 where the partition is not listed, or with
--      another number of partitions: register the queue once more, before the push is acknowledged, and then call `listed`. Without a floor
--      nothing at all is answered then, and nothing was stored: the queue may have been removed, or split anew. Register it, and push
--      again.
-- Invariant: places follow the order of pushes. The first write may take memory: a server without any refuses the push whole.

local K = keys_of('queue jobs states keys scheduled pages waiting lines touched awaiting parents graphs staged @due')
return push_jobs(K, ids_in(ARGV[3]))
