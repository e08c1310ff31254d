-- @include common.lua
-- @include waiting.lua
-- @include run.lua
-- @include jobs.lua
-- @include endings.lua
-- @include changed.lua
-- @include meet.lua
-- @include undecided.lua
-- @include pushes.lua
-- push-once: stores jobs, of which some have `once`: operations.md, "Once for a while".
-- KEYS: queue jobs states keys scheduled pages waiting lines touched awaiting parents graphs staged @due slots groups
-- Head: as of `push`. The tenth entry of a list of values: [remember, replace, maxWait, follow], each nil where absent; remember: ms after
--       the job's end for which its key is remembered, below 0: after its push.
-- In:  as of `push`.
-- Out: as of `push`; or 17 bytes: the id of the job that was replaced, and `r`.
-- Invariant: as of `push`. A script of its own, as plain pushes need few of the included files.

local K = keys_of('queue jobs states keys scheduled pages waiting lines touched awaiting parents graphs staged @due slots groups')
return push_jobs(K, ids_in(ARGV[3]))
