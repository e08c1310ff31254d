-- find: all there is to know about a job.
-- In:  id.
-- Out: every column of its row, or no row.

-- @statement find
select * from millpond_jobs where id = :id
