-- restore: jobs come back as they were.
-- In:  one record: the columns of millpond_jobs without seq and lease_until; line and journal are null. remember and follow_due: once.sql.
-- Out: changes = 1: restored. changes = 0: the id is known, or a live job has the key.
-- Invariant: its place is behind all others. In a grouped queue, run limits/line_up_groups and limits/line_up after it.
-- No fence is given out twice: it goes on from those of jobs that were removed, as the record may be older than one of them.
-- Some drivers bind bytes of length 0 as null, hence the coalesce.

-- @statement restore
insert into millpond_jobs (
  id, queue, state, priority, fence, attempt, attempts, pushed_at, due_at, started_at, finished_at, worker,
  timeout, key, "group", cost, trace, encoding, data, progress_encoding, progress, result_encoding, result, error, log,
  remember, follow_due, parked
)
values (
  :id, :queue, :state, :priority,
  max(:fence, coalesce((select cast(value as integer) from millpond_meta where key = 'removed'), 0)),
  :attempt, :attempts, :pushed_at, :due_at, :started_at, :finished_at, :worker, :timeout, :key, :group,
  :cost, :trace, :encoding, coalesce(:data, x''),
  :progress_encoding, case when :progress_encoding is not null then coalesce(:progress, x'') end,
  :result_encoding, case when :result_encoding is not null then coalesce(:result, x'') end,
  :error, :log, :remember, :follow_due, :parked
)
on conflict do nothing
