-- Everything that Millpond keeps in the caller's own database file: four tables, all with the prefix `millpond_`.
-- Run inside a transaction together with setting `version` in millpond_meta. Never changed once released.
-- Times are milliseconds since 1970. States, names and ids are text, so that people can read the tables with plain SQL.

-- A row per queue: its settings, how many jobs it has in each state, and totals that tell other processes what happened.
-- Counts and totals change in the commit that changes the jobs, so nobody ever has to scan.
create table millpond_queues (
  name            text    primary key,
  capacity        integer,                              -- most scheduled + waiting jobs; null: no limit
  keep_done       integer not null default 3600000,     -- how long done jobs are kept
  keep_dead       integer not null default 604800000,   -- how long dead and cancelled ones are
  paused          integer not null default 0,
  attempts        integer not null default 10,          -- of jobs pushed without a number of their own
  timeout         integer,                              -- of jobs pushed without a limit of their own; null: no limit
  lease           integer not null default 30000,       -- of claims and extensions that name none
  backoff_base    integer not null default 1000,        -- of failures that name no delay: see fail.sql
  backoff_factor  real    not null default 2,
  backoff_max     integer not null default 3600000,
  backoff_jitter  real    not null default 0.5,
  scheduled       integer not null default 0,
  waiting         integer not null default 0,
  running         integer not null default 0,
  done            integer not null default 0,
  dead            integer not null default 0,
  cancelled       integer not null default 0,
  -- These only grow: other processes compare them with what they saw last to learn what happened.
  ready_total     integer not null default 0,           -- became waiting, by whatever way
  finished_total  integer not null default 0,           -- became done, dead or cancelled
  cancelled_total integer not null default 0            -- were cancelled while running
) strict, without rowid;

-- A row per job; its state changes in place. `seq` is its place: it never changes, and later pushes have greater ones.
create table millpond_jobs (
  seq               integer primary key,
  id                text    not null unique,
  queue             text    not null,
  state             text    not null,                   -- scheduled waiting running done dead cancelled
  priority          integer not null,
  fence             integer not null default 0,
  attempt           integer not null default 0,
  attempts          integer not null,
  pushed_at         integer not null,
  due_at            integer not null,
  started_at        integer,                            -- of the last claim
  lease_until       integer,                            -- of the last claim; means something while running
  finished_at       integer,
  worker            text,
  timeout           integer,
  key               text,
  "group"           text,
  trace             text,
  encoding          text    not null,                   -- json (text), msgpack or bytes (blobs)
  data              any     not null,
  progress_encoding text,
  progress          any,
  result_encoding   text,
  result            any,
  error             text                                -- JSON: code, name, message, stack
) strict;

-- Each index holds only the jobs in its own state, so what it serves costs the same whatever else is stored.
create index millpond_waiting   on millpond_jobs (queue, priority desc)      where state = 'waiting';
create index millpond_scheduled on millpond_jobs (queue, due_at)             where state = 'scheduled';
create index millpond_running   on millpond_jobs (queue, lease_until)        where state = 'running';
-- Serves both the lists that people read and the removal of what was kept long enough.
create index millpond_finished  on millpond_jobs (queue, state, finished_at) where finished_at is not null;
-- At most one live job per queue and key.
create unique index millpond_keys on millpond_jobs (queue, key)
  where key is not null and state in ('scheduled', 'waiting', 'running');

-- How long jobs waited and ran, per minute. The minute leads, so that old ones leave as one range.
create table millpond_histograms (
  minute   integer not null,                            -- whole minutes since 1970
  queue    text    not null,
  priority integer not null,
  metric   text    not null,                            -- wait or run
  bucket   integer not null,
  count    integer not null,
  primary key (minute, queue, priority, metric, bucket)
) strict, without rowid;
