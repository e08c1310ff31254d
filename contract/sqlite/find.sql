-- find: all there is to know about a job.
-- In:  id.
-- Out: every column of its row, and entries: how many its journal has, null: none. Or no row.

-- @statement find
select *, case when journal = 1 then (select nullif(entries, 0) from millpond_journals as own where own.job = seq) end as entries
from millpond_jobs where id = :id
