-- Everything that Millpond keeps, in a schema of its own. `millpond` stands for the schema's name throughout these files.
-- Run in one transaction, under an advisory lock, together with setting `version` in meta. Never changed once released.
-- Times are milliseconds since 1970. States, names and ids are readable with plain SQL: see the view `jobs`.
--
-- A job's row lives in the table that is named after what becomes of it, and moves as a whole:
--   waiting (scheduled ones, too) ─claim─► running ─complete─► done (in slots, emptied whole)
--                                                 └─► retired (dead, cancelled)
-- So each hot table holds only jobs in its own state, rows are inserted and deleted but hardly ever updated, and no index is
-- touched because a column changed.

create table millpond.meta (
  version    integer not null,                         -- number of the last migration
  operations text    not null,                         -- digest of the functions
  install    uuid    not null default gen_random_uuid(), -- tells this schema from one of the same name elsewhere
  fences     integer not null default 0                -- all fences given out lie above
);

-- Not in the log, so it is empty after a crash, and on a standby that took over. Claims wait for no fsync: the last ones are undone
-- then, and their fences must not be given out once more. The next claim finds this out, and raises `fences`, of which this is a copy.
create unlogged table millpond.unharmed (
  fences integer not null
);
insert into millpond.unharmed values (0);

create sequence millpond.place;

create table millpond.queues (
  id        integer generated always as identity primary key,
  name      text    collate "C" not null unique,
  capacity  bigint,                                    -- most scheduled + waiting jobs; null: no limit
  keep_done bigint  not null default 3600000,          -- how long done jobs are kept
  keep_dead bigint  not null default 604800000,        -- how long dead and cancelled ones are
  paused    boolean not null default false
);

-- Where a claim's scan may begin, per queue: places for the priorities 9, 8 … 0. No job of lane 0 waits before them. Without
-- this a scan would step over every claimed job's index entry for as long as some old transaction keeps vacuum from removing it.
create table millpond.marks (
  queue  integer  primary key,
  places bigint[] not null default '{0,0,0,0,0,0,0,0,0,0}'
) with (fillfactor = 50);

create table millpond.waiting (
  seq               bigint   not null,                 -- its place: never changes, later pushes have greater ones
  pushed_at         bigint   not null,
  due_at            bigint   not null,
  timeout           bigint,
  started_at        bigint,                            -- of the last claim that counted
  id                uuid     not null,
  queue             integer  not null,
  fence             integer  not null default 0,
  attempt           integer  not null default 0,
  attempts          integer  not null,
  priority          smallint not null,
  lane              smallint not null default 0,       -- 0: as pushed; 1: came back, so its place may lie before the marks
  scheduled         boolean  not null default false,   -- not due yet
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
  error             text collate "C"                   -- JSON: code, name, message, stack
);
create unique index waiting_id on millpond.waiting (id);
create index waiting_ready     on millpond.waiting (queue, lane, priority desc, seq) where not scheduled;
create index waiting_scheduled on millpond.waiting (queue, due_at, seq)              where scheduled;

create table millpond.running (like millpond.waiting including defaults, lease_until bigint not null);
create unique index running_id on millpond.running (id);
create index running_lease     on millpond.running (queue, lease_until, seq);

create table millpond.done (
  like millpond.waiting including defaults,
  finished_at     bigint   not null,
  slot            smallint not null,
  result_encoding text collate "C",
  result          text collate "C",
  result_bytes    bytea
) partition by list (slot);
create index done_id       on millpond.done (id);
-- Rows come in the order of finishing, so a summary of each stretch of pages leads to a time, and costs a completion nothing.
create index done_finished on millpond.done using brin (finished_at) with (pages_per_range = 16, autosummarize = on);
create table millpond.done_0 partition of millpond.done for values in (0);
create table millpond.done_1 partition of millpond.done for values in (1);
create table millpond.done_2 partition of millpond.done for values in (2);
create table millpond.done_3 partition of millpond.done for values in (3);
create table millpond.done_4 partition of millpond.done for values in (4);
create table millpond.done_5 partition of millpond.done for values in (5);
create table millpond.done_6 partition of millpond.done for values in (6);
create table millpond.done_7 partition of millpond.done for values in (7);

-- The slots of `done`, in use one after another: the current one takes what finishes now, closed ones wait until all that they
-- hold was kept long enough, and are emptied at one stroke. `used` ones hold something.
create table millpond.slots (
  slot      smallint primary key,
  current   boolean  not null default false,
  used      boolean  not null default false,
  opened_at bigint,
  closed_at bigint,
  greatest  uuid                                       -- the greatest id in a closed one: greater ids need not be looked up in it
);
insert into millpond.slots (slot, current, used) select n, n = 0, n = 0 from generate_series(0, 7) as n;

create table millpond.retired (
  like millpond.waiting including defaults,
  finished_at bigint not null,
  state       text collate "C" not null                -- dead or cancelled
);
create unique index retired_id on millpond.retired (id);
create index retired_finished  on millpond.retired (queue, state, finished_at, seq);

-- At most one live job per queue and key.
create table millpond.keys (
  queue integer not null,
  key   text collate "C" not null,
  id    uuid not null,
  primary key (queue, key)
);

-- Pushes that were made again while nobody knew what became of them (`push_list`), for an hour.
create table millpond.repeats (
  at bigint not null
);

-- By how much each operation changed the counts; the sweep sums them up. Adding a row instead of changing one means that nobody
-- waits for another's commit. `done` ones name their slot, so that emptying it takes its jobs off the count.
create table millpond.counts (
  queue     integer  not null,
  slot      smallint not null default 0,
  scheduled bigint   not null default 0,
  waiting   bigint   not null default 0,
  running   bigint   not null default 0,
  done      bigint   not null default 0,
  dead      bigint   not null default 0,
  cancelled bigint   not null default 0,
  -- These only grow: whoever cannot LISTEN compares them with what he saw last to learn what happened.
  ready     bigint   not null default 0,               -- became waiting, by whatever way
  room      bigint   not null default 0,               -- left scheduled or waiting
  finished  bigint   not null default 0,               -- became done, dead or cancelled
  stopped   bigint   not null default 0                -- were cancelled while running
);

-- Who found a queue empty and wants to be notified of the next push.
create table millpond.sleepers (
  queue    text collate "C" not null,
  listener text collate "C" not null,
  primary key (queue, listener)
);

-- How long jobs waited and ran, per minute.
create table millpond.histograms (
  minute   bigint   not null,                          -- whole minutes since 1970
  queue    integer  not null,
  priority smallint not null,
  metric   text collate "C" not null,                  -- wait or run
  bucket   integer  not null,
  count    bigint   not null,
  primary key (minute, queue, priority, metric, bucket)
);

-- Hot tables are vacuumed by how much has died in them, not by how large they are: at 10 million waiting jobs a fifth of the
-- table would be too late. What is dead here is dead for good, so the vacuum need not be throttled.
alter table millpond.waiting set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 0.5, autovacuum_analyze_threshold = 100000);
alter table millpond.running set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 0.5, autovacuum_analyze_threshold = 100000);
alter table millpond.counts set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0);
alter table millpond.sleepers set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
