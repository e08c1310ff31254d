-- bulk: one change to the jobs of a state that pass a filter, a step at a time.
-- In one transaction: the statements of `list` find places, and with a filter `list/matching` which of them pass; `look` of those tells
-- what operations.md compares with `until` and an update; then the statements of requeue, cancel, remove or update change them by id.
-- In:  seqs: a JSON list.
-- Out: of `look`, rows in any order.
-- Invariant: all of it happens in one transaction, so no job changes between the look and the change.

-- @statement look
select jobs.seq, jobs.id, priority, pushed_at, due_at, started_at, finished_at
from json_each(:seqs) as looked cross join millpond_jobs as jobs on jobs.seq = looked.value
