-- Steps: journals of jobs, and parks (journal.sql, and contract/steps.md).

alter table millpond_jobs add column journal integer;    -- 1: it has a row in millpond_journals
alter table millpond_jobs add column parked text;        -- of a parked job, what it waits for, as JSON; null: it is not parked

-- A row per job that has, or had, entries.
create table millpond_journals (
  job     integer primary key,                          -- seq
  entries integer not null,                             -- how many there are
  bytes   integer not null,                             -- of their names, metas and bodies
  signals integer not null,                             -- how many of them are signals
  last    integer not null                              -- the highest number that was given to an entry
) strict;

-- `bytes` stands before the body: to add up sizes reads no body.
create table millpond_entries (
  job      integer not null,                            -- seq
  n        integer not null,                            -- from 1
  name     text    not null,
  meta     text    not null,
  bytes    integer not null,                            -- of its name, meta and body
  encoding text,                                        -- as of a job's data; null: it has no body
  body     any,
  primary key (job, n),
  unique (job, name)
) strict, without rowid;

-- A journal goes with its job, whoever removes the job: its place may be given to another one.
create trigger millpond_job_removed after delete on millpond_jobs when old.journal is not null begin
  delete from millpond_journals where job = old.seq;
end;
create trigger millpond_journal_removed after delete on millpond_journals begin
  delete from millpond_entries where job = old.job;
end;
