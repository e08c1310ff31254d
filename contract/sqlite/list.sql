-- list: one queue's jobs in one state, a page at a time.
-- In:  queue, limit; final ones also state; key and seq of the cursor. key: its priority, due_at, lease_until or
--      finished_at, by which the state is ordered; of a blocked one its seq. Of a first page, key and seq are before all
--      jobs: 10 or -9007199254740991, of final ones 9007199254740991, and -1.
-- Out: key and seq of the rows: blocked ones by place, waiting ones by priority and place, scheduled ones soonest first,
--      running ones by lease, final ones newest first. `matching`, which of them a filter lets through; `job`, every
--      column of a row. The cursor of a row is STATE.KEY.SEQ.
-- Invariant: each page costs the same, however deep: every order is that of an index, or merged of one per group.
--      No page needs the job before it to be still there.

-- @statement blocked
select seq as key, seq from millpond_jobs indexed by millpond_blocked
where queue = :queue and state = 'blocked' and seq > :seq
order by seq limit :limit

-- @statement waiting
-- The rest of the cursor's own priority, then the lower ones: two ranges of the index, where an `or` would be a scan.
-- Of a grouped queue: `lines`.
select * from (
  select priority as key, seq from millpond_jobs indexed by millpond_waiting
  where queue = :queue and state = 'waiting' and line is null and priority = :key and seq > :seq
  order by seq limit :limit
)
union all
select * from (
  select priority as key, seq from millpond_jobs indexed by millpond_waiting
  where queue = :queue and state = 'waiting' and line is null and priority < :key
  order by priority desc, seq limit :limit
)
limit :limit

-- @statement lines
-- In also: group, a filter: looks at no other group; null: all. A page is merged from the lines of those groups (and of the jobs that are
-- in none yet) whose first jobs beyond the cursor are the first ones: no other line has a job that comes before `limit` others.
with lines (line) as (
  select id from millpond_groups where queue = :queue and (:group is null or name = :group)
  union all
  select null
), heads as materialized (
  select line, ifnull(
    (
      select seq from millpond_jobs indexed by millpond_waiting
      where queue = :queue and line is lines.line and state = 'waiting' and priority = :key and seq > :seq
      order by seq limit 1
    ), (
      select seq from millpond_jobs indexed by millpond_waiting
      where queue = :queue and line is lines.line and state = 'waiting' and priority < :key
      order by priority desc, seq limit 1
    )
  ) as seq
  from lines
), nearest as materialized (
  select heads.line, job.priority, job.seq from heads cross join millpond_jobs as job on job.seq = heads.seq
  order by job.priority desc, job.seq limit :limit
), last as materialized (
  -- Of a full page, no job comes after the last of these.
  select ifnull(min(priority), 0) as priority, ifnull(max(seq), 9223372036854775807) as seq from (
    select priority, seq from nearest order by priority desc, seq limit 1 offset :limit - 1
  )
)
select job.priority as key, job.seq
from nearest cross join last cross join json_each((
  select json_group_array(seq) from (
    select * from (
      select seq from millpond_jobs indexed by millpond_waiting
      where queue = :queue and line is nearest.line and state = 'waiting' and priority = nearest.priority
        and seq between nearest.seq and iif(nearest.priority = last.priority, last.seq, 9223372036854775807)
      order by seq limit :limit
    )
    union all
    select * from (
      select seq from millpond_jobs indexed by millpond_waiting
      where queue = :queue and line is nearest.line and state = 'waiting'
        and priority < nearest.priority and priority >= last.priority
      order by priority desc, seq limit :limit
    )
    limit :limit
  )
)) as each cross join millpond_jobs as job on job.seq = each.value
order by job.priority desc, job.seq
limit :limit

-- @statement scheduled
select due_at as key, seq from millpond_jobs indexed by millpond_scheduled
where queue = :queue and state = 'scheduled' and (due_at, seq) > (:key, :seq)
order by due_at, seq limit :limit

-- @statement running
select lease_until as key, seq from millpond_jobs indexed by millpond_running
where queue = :queue and state = 'running' and (lease_until, seq) > (:key, :seq)
order by lease_until, seq limit :limit

-- @statement final
select finished_at as key, seq from millpond_jobs indexed by millpond_finished
where queue = :queue and state = :state and finished_at is not null and (finished_at, seq) < (:key, :seq)
order by finished_at desc, seq desc limit :limit

-- @statement matching
-- Of `seqs`, a JSON list; rows come in any order. What is null asks for nothing. bytes: how much data was looked at for `text` or `data`,
-- which is given as data_path, its names as a JSON list, data_value, and data_number, the number that data_value is, or null.
select seq,
  ifnull(
    (:group is null or ifnull("group", '') = :group)
    and (:key is null or jobs.key = :key)
    and (:error_code is null or iif(json_valid(error), error ->> 'code', '') = :error_code)
    and (:error_text is null or iif(json_valid(error), instr(error ->> 'message', :error_text), 0) > 0)
    and (:pushed_from is null or pushed_at >= :pushed_from)
    and (:pushed_before is null or pushed_at < :pushed_before)
    and (:text is null or encoding = 'json' and instr(data, :text) > 0)
    -- A case, since SQLite before 3.43 works out both sides of an `and`, and data may be no JSON.
    and case when :data_path is null then 1 when encoding <> 'json' then 0 when not json_valid(data) then 0 else exists (
      with recursive walk(depth, value, type) as (
        select 0, data, json_type(data)
        union all
        select depth + 1, member.value, member.type
        from walk cross join json_each(iif(walk.type = 'object', walk.value, '{}')) as member
        where depth < json_array_length(:data_path) and member.key = json_extract(:data_path, '$[' || depth || ']')
      )
      select 1 from walk
      where depth = json_array_length(:data_path) and case
        when type = 'text' then value = :data_value
        when type in ('integer', 'real') then value = :data_number
        else type in ('true', 'false', 'null') and type = :data_value
      end
    ) end,
    0
  ) as matches,
  iif(:text is null and :data_path is null, 0, length(data)) as bytes
from json_each(:seqs) as looked cross join millpond_jobs as jobs on jobs.seq = looked.value

-- @statement job
-- As find/find.
select *, case when journal = 1 then (select nullif(entries, 0) from millpond_journals as own where own.job = seq) end as entries
from millpond_jobs where seq = :seq
