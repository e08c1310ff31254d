-- Everything that Millpond keeps, in a schema of its own. `millpond` stands for the schema's name throughout these files.
-- Run in one transaction, under an advisory lock, together with setting `version` in meta. Never changed once released.
-- Times are milliseconds since 1970. States, names and ids are readable with plain SQL: see the view `jobs`.
--
-- A job's row lives in the table that is named after what becomes of it, and moves as a whole:
--   waiting (scheduled ones, too) -claim-> running -complete-> done (in segments, emptied whole)
--                                                 \-> retired (dead, cancelled)
-- So each hot table holds only jobs in its own state, rows are inserted and deleted but hardly ever updated, and no index is
-- touched because a column changed.

create table millpond.meta (
  -- Number of the last migration; the default, too, as a dump may hold the schema alone.
  version    integer not null default 1,
  operations text    not null default '',              -- digest of the functions
  edition    integer not null default 0,               -- their edition; 0: none are known to be installed
  install    uuid    not null default gen_random_uuid(), -- tells this schema from one of the same name elsewhere
  home       text    not null,                         -- where `install` is: elsewhere this is a copy; see `here` in recovery.sql
  fences     bigint  not null default 0,               -- all fences given out lie above
  removed    bigint  not null default 0                -- where fences of jobs begin whose ids may have been removed: see remove.sql
);

-- A copy of `fences`, for claims. Not in the log, so it is empty after a crash, and on a standby that took over. Claims
-- wait for no fsync: the last ones are undone then, and their fences must not be given out once more. A row counts only
-- in the file and the life of the server in which it was written: a dump, restored in this database or elsewhere,
-- brings it along. `unharmed` shows none then, and the next claim raises `fences`.
create unlogged table millpond.fence_floor (
  fences bigint      not null,
  file   oid         not null default pg_relation_filenode('millpond.fence_floor'),
  since  timestamptz not null default pg_postmaster_start_time()
);
create view millpond.unharmed as
  select fences from millpond.fence_floor where file = pg_relation_filenode(tableoid) and since = pg_postmaster_start_time();
insert into millpond.fence_floor (fences) values (0);

create sequence millpond.place;

-- The checks are for what roles may call themselves: no value of theirs can harm a worker or a sweep.
create table millpond.queues (
  id             integer generated always as identity primary key,
  name           text    collate "C" not null unique check (name ~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$'),
  code           jsonb,                                -- what code has given of the settings, and what an operator has; null: nothing
  operator       jsonb,
  heard_at       bigint,                               -- when a worker of it was last heard of
  capacity       bigint  check (capacity >= 1),        -- most scheduled + waiting jobs; null: no limit
  -- How long done jobs are kept, and how long dead and cancelled ones.
  keep_done      bigint  not null default 3600000 check (keep_done between 0 and 8640000000000000),
  keep_dead      bigint  not null default 604800000 check (keep_dead between 0 and 8640000000000000),
  paused         boolean not null default false,
  -- Of jobs pushed without a number of attempts or a timeout of their own; of claims and extensions that name no lease.
  attempts       integer not null default 10 check (attempts between 1 and 1000000),
  timeout        bigint  check (timeout between 1 and 8640000000000000), -- null: no limit
  lease          bigint  not null default 30000 check (lease between 1 and 8640000000000000),
  -- Of failures that name no delay: see fail.sql.
  backoff_base   bigint  not null default 1000 check (backoff_base between 0 and 8640000000000000),
  backoff_factor double precision not null default 2 check (backoff_factor between 1 and 100),
  backoff_max    bigint  not null default 3600000 check (backoff_max between 0 and 8640000000000000),
  backoff_jitter double precision not null default 0.5 check (backoff_jitter between 0 and 1),
  line           integer not null default 1,           -- the line that takes the jobs that come back
  -- By a release with a pause, and the length of that pause: see pause_end in limits.sql.
  paused_until   bigint  not null default 0,
  pause_length   bigint  not null default 0,
  -- null: none; else it has rows in `limits` and `turns`; `groups`: it is grouped.
  limits         text    check (limits in ('queue', 'groups'))
);

-- Starts in a time: at most `count` in `per` ms. `burst` null: those of 100 ms. Limits of it are in limits.sql.
create type millpond.rate as (count integer, per bigint, burst integer);

-- A claim that was given back at `at`, in ms. `pause`: for which its group starts nothing; 0: its start is given back to the rates.
create type millpond.released as (
  "group" text, started_at bigint, cost integer, pause bigint, at bigint,
  rate millpond.rate, group_rate millpond.rate         -- as they were then
);

-- A job that a claim of a grouped queue may start. `virtual_time`: its group's virtual time before the start; `after`: the one
-- after it; `nth` in its group.
create type millpond.candidate as (
  ctid tid, name text, nth integer, priority smallint, cost integer, bytes bigint, virtual_time double precision, after double precision
);

-- What a queue with limits was told: written by configure and limit_group, read by claims.
create table millpond.limits (
  queue         integer primary key,
  version       integer not null default 0,            -- grows as settings change, those of single groups, too
  running       integer check (running >= 1),
  rate          millpond.rate,
  grouped       boolean not null default false,
  group_running integer check (group_running >= 1),
  group_rate    millpond.rate
);
-- The limits of groups that have limits of their own.
create table millpond.group_limits (
  queue   integer not null,
  name    text collate "C" not null,                   -- empty: the jobs without a group
  running integer check (running >= 1),
  rate    millpond.rate,
  weight  double precision not null default 1 check (weight > 0 and weight <= 1000),
  primary key (queue, name)
);

-- Where a queue with limits stands. A claim locks the row before it looks, and holds it to its end: so claims of such a
-- queue follow each other. Only who holds it writes here and in `groups`. Everybody else writes to `arrivals`. See
-- turns.sql.
create table millpond.turns (
  queue      integer primary key,
  version    integer not null default 0,               -- of the limits by which its groups were placed
  claimed_at bigint  not null default 0,               -- the time of the last claim that changed something here
  full_at    bigint  not null default 0,               -- of its rate, in microseconds
  full_cost  integer not null default 1,               -- cost of its last start
  virtual    double precision[] not null default '{0,0,0,0,0,0,0,0,0,0}' -- of the priorities 0 to 9
) with (fillfactor = 50);

-- What is known of a queue's groups.
create table millpond.groups (
  queue        integer not null,
  name         text collate "C" not null,              -- empty: the jobs without a group
  full_at      bigint  not null default 0,
  full_cost    integer not null default 1,
  paused_until bigint  not null default 0,
  pause_length bigint  not null default 0,
  virtual      double precision[],                     -- by priority + 1; null: 0
  -- Of its first job, if that may start: `ticket`, its priority; `virtual_time`, the group's virtual time there; its place.
  ticket       smallint,
  virtual_time double precision,
  place        bigint,
  held_until   bigint,                                 -- when a rate or pause lets the first job start; null: not what it waits for
  forget_at    bigint,                                 -- when a sweep may forget it, as a claim has found it idle; null: never
  primary key (queue, name)
) with (fillfactor = 50);
create index groups_held    on millpond.groups (queue, held_until)               where held_until is not null;
create index groups_idle    on millpond.groups (forget_at)                       where forget_at is not null;

-- The tickets of `groups`, in their order. A table of its own, so that a start changes no index of `groups`: that row
-- is written in place, and found without stepping over its former versions.
create table millpond.tickets (
  queue        integer  not null,
  priority     smallint not null,
  virtual_time double precision not null,
  place        bigint   not null,
  name         text collate "C" not null
);
create unique index tickets_order on millpond.tickets (queue, priority desc, virtual_time, place);
alter table millpond.tickets replica identity using index tickets_order;

-- The inbox of a grouped queue: groups of which a job began or ceased to wait or to run, or whose limits changed,
-- written in the same transaction. The next claim folds it into `groups`.
create table millpond.arrivals (
  queue    integer not null,
  id       bigint  generated always as identity,
  groups   text[]  collate "C" not null,
  -- Nothing but running jobs ended: that changes nothing for a group that has a ticket or is held.
  freed    boolean not null default false,
  released millpond.released[],                        -- claims that were given back
  primary key (queue, id)
);
create index arrivals_released on millpond.arrivals (queue) where released is not null;

-- The lines in which a queue's jobs wait: line 0 as pushed, the others for jobs that came back, whose places may lie
-- anywhere; -1 all of a grouped queue. A claim begins each line at its marks: places for the priorities 9, 8 to 0,
-- before which no job of the line waits. Without them it would step over every claimed job's index entry for as long as
-- some old transaction keeps vacuum from removing it. See lines.sql.
create table millpond.lines (
  queue  integer  not null,
  line   integer  not null,
  places bigint[] not null default '{0,0,0,0,0,0,0,0,0,0}',
  primary key (queue, line)
) with (fillfactor = 50);

create table millpond.waiting (
  place             bigint   not null,                 -- in the order of first pushes; never changes
  pushed_at         bigint   not null,
  due_at            bigint   not null,
  timeout           bigint,
  started_at        bigint,                            -- of the last claim that counted
  id                uuid     not null,
  queue             integer  not null,
  fence             bigint   not null default 0,
  attempt           integer  not null default 0,
  attempts          integer  not null,
  priority          smallint not null,
  cost              integer  not null default 1,       -- what a start takes of a rate
  line              integer  not null default 0,       -- running: -1 where the group's slots count it, -2 where the queue's do
  state             text collate "C" not null default 'waiting', -- or scheduled: not due yet
  key               text collate "C",
  "group"           text collate "C",
  trace             text collate "C",
  worker            text collate "C",
  encoding          text collate "C" not null,         -- json (in data), msgpack or bytes (in data_bytes)
  data              text collate "C",
  data_bytes        bytea,
  progress_encoding text collate "C",
  progress          text collate "C",
  progress_bytes    bytea,
  error             text collate "C",                  -- JSON: code, name, message, stack
  log               text collate "C",                  -- its lines, with a line feed between them; null: none
  remember          bigint,                            -- how long its key is remembered, in ms after its end; below 0: after its push
  follow_due        bigint,                            -- of a follower, which is due at no time: from when it may start; see once.sql
  lease_until       bigint,                            -- of running jobs; so that their rows have the same form
  -- Whoever may push or work, no answer with a job in it grows beyond what a client can take. A claim brings 16 MiB and
  -- the job that makes it so many, a record three bodies; quoted as JSON, which may take six bytes for one, either
  -- stays under the 512 MiB of JavaScript's longest text.
  constraint payload_too_large check (
    greatest(octet_length(data), octet_length(data_bytes), octet_length(progress), octet_length(progress_bytes)) <= 16777216),
  constraint text_too_large check (greatest(octet_length(error), octet_length(trace), octet_length(worker)) <= 1048576)
);
create unique index waiting_id on millpond.waiting (id);
create index waiting_ready     on millpond.waiting (queue, line, priority desc, place) where state = 'waiting';
create index waiting_group     on millpond.waiting (queue, coalesce("group", ''), priority desc, place)
  where state = 'waiting' and line = -1;
create index waiting_scheduled on millpond.waiting (queue, due_at, place)              where state = 'scheduled';
create index waiting_due       on millpond.waiting (due_at, place)                     where state = 'scheduled';

create table millpond.running (like millpond.waiting including defaults including constraints);
alter table millpond.running alter lease_until set not null, alter state set default 'running';
create unique index running_id on millpond.running (id);
create index running_lease     on millpond.running (lease_until, queue, place);
create index running_counted   on millpond.running (queue, coalesce("group", '')) where line < 0;

create table millpond.done (
  like millpond.waiting including defaults including constraints,
  finished_at     bigint   not null,
  segment         smallint not null,
  result_encoding text collate "C",
  result          text collate "C",
  result_bytes    bytea,
  constraint result_too_large check (greatest(octet_length(result), octet_length(result_bytes)) <= 16777216)
) partition by list (segment);
alter table millpond.done alter state set default 'done';
create index done_id       on millpond.done (id);
create index done_finished on millpond.done (queue, finished_at); -- whole batches finish at one time, which it keeps once
create table millpond.done_0 partition of millpond.done for values in (0);
create table millpond.done_1 partition of millpond.done for values in (1);
create table millpond.done_2 partition of millpond.done for values in (2);
create table millpond.done_3 partition of millpond.done for values in (3);
create table millpond.done_4 partition of millpond.done for values in (4);
create table millpond.done_5 partition of millpond.done for values in (5);
create table millpond.done_6 partition of millpond.done for values in (6);
create table millpond.done_7 partition of millpond.done for values in (7);

-- The segments of `done`, in use one after another: the current one takes what finishes now, closed ones wait until all that they
-- hold was kept long enough, and are emptied at one stroke. `used` ones hold something. Segment -1 stands for `retired`.
create table millpond.segments (
  segment   smallint primary key,
  current   boolean  not null default false,
  used      boolean  not null default false,
  opened_at bigint,
  closed_at bigint,
  greatest  uuid,                                      -- the greatest id in a closed one: greater ids need not be looked up in it
  look_at   bigint                                     -- before then nothing in it was kept long enough; null: not known
);
insert into millpond.segments (segment, current, used) select n, n = 0, n = 0 from generate_series(-1, 7) as n;

create table millpond.retired (
  like millpond.waiting including defaults including constraints,
  finished_at bigint not null
);
alter table millpond.retired alter state drop default; -- dead or cancelled
create unique index retired_id on millpond.retired (id);
create index retired_finished  on millpond.retired (queue, state, finished_at, place);

-- At most one live job per queue and key; and keys that are remembered, or followed: once.sql.
create table millpond.keys (
  queue    integer not null,
  key      text collate "C" not null,
  id       uuid not null,
  until    bigint,                                     -- null: a live job has it; else it is remembered until then
  memory   bigint,                                     -- what becomes of it when the live job ends; null: it is free then
  follower uuid,
  primary key (queue, key)
);
create index keys_until on millpond.keys (until) where until is not null;

-- Pushes that were made again while nobody knew what became of them (`push_list`), for an hour.
create table millpond.repeats (
  at bigint not null
);

-- How many jobs went from which state to which and why, a row per operation: nobody waits for another's commit. `new`
-- and `gone` are before the push and after the end. What leads to or from `done` names the segment, so that emptying it
-- takes its jobs off the count. `cause`: the operation; of sweeps promote, lose (a lease ran out) or expire. Sweeps add
-- them up in `totals`. A state's count is what came minus what went. What happened since the queue came to be is
-- counted by the cause.
create sequence millpond.move;
create table millpond.moves (
  id      bigint   not null default nextval('millpond.move'),
  queue   integer  not null,
  segment smallint not null default 0,
  was     text collate "C" not null,
  becomes text collate "C" not null,
  cause   text collate "C" not null,
  count   bigint   not null
);
create index moves_id    on millpond.moves (id);
create index moves_queue on millpond.moves (queue);
create table millpond.totals (
  queue   integer  not null,
  segment smallint not null,
  was     text collate "C" not null,
  becomes text collate "C" not null,
  cause   text collate "C" not null,
  count   bigint   not null,
  primary key (queue, segment, was, becomes, cause)
) with (fillfactor = 50);

-- Where sweeps begin: no scheduled job is due, no lease ends, no group may be forgotten before these times, nor will
-- one that is on its way. Without them a sweep would step over every dead index entry for as long as some old
-- transaction keeps vacuum from removing it. Sequences, since a row would leave a dead version behind each time. See
-- `hold_time` in shared.sql.
create sequence millpond.swept_due    minvalue 0;
create sequence millpond.swept_place  minvalue 0;        -- of the first job that is due then: thousands may be due at one time
create sequence millpond.swept_leases minvalue 0;
create sequence millpond.swept_idle   minvalue 0;
-- Moves before this id were added up, but for those that committed late.
create sequence millpond.swept_moves  minvalue 0;
-- When a sweep begins at the beginning again: the marks hold only as long as the clock does not go back.
create sequence millpond.swept_whole  minvalue 0;

-- Who waits for something in a queue and wants to be notified, once: `work`: a claim found none; `room`: found it full;
-- `finished`: looked at a job that goes on.
create table millpond.sleepers (
  queue    text collate "C" not null,
  listener text collate "C" not null,
  kind     text collate "C" not null default 'work',
  primary key (queue, kind, listener)
);

-- How long jobs waited and ran, per minute.
create table millpond.histograms (
  minute   bigint   not null,                          -- whole minutes since 1970; -1: all older ones
  queue    integer  not null,
  priority smallint not null,
  metric   text collate "C" not null,                  -- wait or run
  bucket   integer  not null,
  count    bigint   not null,
  primary key (minute, queue, priority, metric, bucket)
);

-- Who works, as heartbeats tell. The sweep forgets those that fell silent.
create table millpond.workers (
  id    text    collate "C" not null,
  queue text    collate "C" not null,
  host  text    collate "C" not null,
  pid   integer not null,
  slots integer not null,                              -- how many jobs it runs at once, and how many it runs now
  busy  integer not null,
  since bigint  not null,                              -- first and last heard of
  seen  bigint  not null,
  primary key (id, queue),
  constraint text_too_large check (greatest(octet_length(id), octet_length(host)) <= 1024 and octet_length(queue) <= 128)
) with (fillfactor = 50);

-- A row per schedule: see schedules.sql. Of its times, PostgreSQL knows only the next one.
create table millpond.schedules (
  name       text    collate "C" primary key,
  version    text    not null,                         -- of what is declared; former: those that it replaced
  former     text[]  not null default '{}',
  "when"     text    not null,                         -- a cron line or an interval, and the zone of the line
  tz         text    not null,
  missed     text    not null,                         -- once, skip, all
  jitter     bigint  not null,
  "from"     bigint,
  until      bigint,
  paused     boolean not null,
  planned    boolean not null default false,           -- false: since next_at nobody has computed when it fires
  next_at    bigint,                                   -- when it fires next; null: never again
  changed_at bigint  not null,
  seen_at    bigint  not null,                         -- when code last declared it
  last_at    bigint,                                   -- when it last fired
  job        json    not null,                         -- what it pushes; data is a tagged text
  constraint text_too_large check (greatest(octet_length(name), octet_length("when"), octet_length(tz)) <= 1024)
);
create index schedules_next on millpond.schedules (next_at) where not paused and next_at is not null;

-- Hot tables are vacuumed by how much has died in them, not by how large they are: at 10 million waiting jobs a fifth of the
-- table would be too late. What is dead here is dead for good, so the vacuum need not be throttled.
alter table millpond.waiting set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_threshold = -1,
  autovacuum_analyze_scale_factor = 0.5, autovacuum_analyze_threshold = 100000);
alter table millpond.running set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_threshold = -1,
  autovacuum_analyze_scale_factor = 0.5, autovacuum_analyze_threshold = 100000);
alter table millpond.moves set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0);
alter table millpond.sleepers set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
alter table millpond.workers set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
alter table millpond.groups set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0);
alter table millpond.tickets set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0);
alter table millpond.arrivals set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0);
alter table millpond.turns set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- A publication of all tables refuses changes to a table whose rows it cannot tell apart. Costs nothing without `wal_level = logical`.
alter table millpond.waiting replica identity using index waiting_id;
alter table millpond.running replica identity using index running_id;
alter table millpond.retired replica identity using index retired_id;
do $$
declare
  v_table regclass;
begin
  for v_table in
    select oid from pg_class where relnamespace = 'millpond'::regnamespace and relkind in ('r', 'p') and relreplident = 'd'
      and not exists (select from pg_index where indrelid = pg_class.oid and indisprimary)
  loop
    execute format('alter table %s replica identity full', v_table);
  end loop;
end $$;
