-- outcomes: what has become of a job, without its data.
-- In:  id.
-- Out: the columns of its row, or no row.

-- @statement outcome
select id, queue, state, attempt, attempts, error, result_encoding, result from millpond_jobs where id = :id
