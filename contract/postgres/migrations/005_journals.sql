-- Journals of jobs, and jobs that are parked: see journals.sql and parks.sql. All of it goes by the place of a job, which no other job ever
-- has: so nothing is left to a job that has the id of one that is gone.

alter table millpond.meta alter version set default 5;

-- Some job of the queue has, or had, a row in `journals`. false: nobody looks there.
alter table millpond.queues add column journals boolean not null default false;

-- Who adds an entry holds the row, so entries are committed in the order of their numbers.
create table millpond.journals (
  place      bigint  primary key,
  id         uuid    not null,                         -- of the job
  last       integer not null default 0,               -- the greatest number given out
  count      integer not null default 0,               -- entries, their bytes, and how many of them are signals
  bytes      bigint  not null default 0,
  signals    integer not null default 0,
  -- What the last park waits for, and its claim's fence. The job is parked while it has that fence and does not run.
  parked     text    collate "C",
  park_fence bigint,
  constraint text_too_large check (octet_length(parked) <= 65536)
) with (fillfactor = 70);

create table millpond.entries (
  place      bigint  not null,
  n          integer not null,
  name       text    collate "C" not null,
  meta       text    collate "C" not null,
  encoding   text    collate "C",                      -- of the body, as of `data`; null: it has none
  body       text    collate "C",
  body_bytes bytea,
  primary key (place, n),
  constraint payload_too_large check (greatest(octet_length(body), octet_length(body_bytes)) <= 16777216),
  constraint text_too_large check (octet_length(name) between 1 and 512 and octet_length(meta) <= 65536)
);
create unique index entries_name on millpond.entries (place, name);

-- How far the sweeps have come that remove journals of jobs that are gone.
create table millpond.journal_walk (
  place   bigint not null,                             -- up to which they were looked at; 0: none yet
  next_at bigint not null
);

alter table millpond.journals set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0);
alter table millpond.journal_walk set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
alter table millpond.journal_walk replica identity full;
