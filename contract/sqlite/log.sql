-- log: a claim adds lines to the log of its job.
-- In:  queue, id, fence; lines, as JSON: a list of texts.
-- Out: changes = 0: the claim is over, and nothing was added.
-- Run before `complete`, `fail`, `release` or `extend` of the same claim, in its transaction; not at all without lines.
-- Invariant: lines that are there already are left out; of the others the last 100 are kept, and of those as many as have 65536 bytes.

-- @statement add
update millpond_jobs set log = (
  select json_group_array(line) from (
    select line from (
      select line, nth, count(*) over newest as lines, sum(length(cast(line as blob)) + 1) over newest as bytes
      from (
        select line, min(nth) as nth from (
          select value as line, key as nth from json_each(ifnull(millpond_jobs.log, '[]'))
          union all
          select value, 1000000 + key from json_each(:lines)
        )
        group by line
      )
      window newest as (order by nth desc)
    )
    where lines <= 100 and bytes <= 65536
    order by nth
  )
)
where id = :id and fence = :fence and state = 'running' and queue = :queue
