-- Everything that Millpond keeps in the caller's own database file: tables, views and triggers, all with the prefix `millpond_`.
-- Run inside a transaction together with setting `version` in millpond_meta. Never changed once released.
-- Times are milliseconds since 1970. States, names and ids are text, so that people can read the tables with plain SQL.

-- A row per queue: its settings, and the state of its limits. How many jobs it has is in millpond_counts.
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
  code            text,                                 -- JSON of the settings that code and an operator have given: see configure.sql
  operator        text,
  heard_at        integer,                              -- when a worker of it was last heard of
  -- Limits; null: none. A rate is JSON: count, per (ms), burst (or null).
  most            integer,                              -- jobs that run at once
  rate            text,
  grouped         integer not null default 0,           -- 1: groups take turns
  group_most      integer,                              -- of each group, unless it has limits of its own
  group_rate      text,
  rate_step       integer,                              -- what a start costs by the rate, in microseconds, and the rate's burst
  rate_burst      integer,
  group_step      integer,
  group_burst     integer,
  "full"          integer not null default 0,           -- of its rate, in microseconds
  full_cost       integer not null default 1,           -- the cost of the last start
  paused_until    integer not null default 0,           -- by a release with a pause
  pause_length    integer not null default 0,           -- of that pause
  claimed_at      integer not null default 0,           -- when a claim last looked at groups
  once            integer not null default 0            -- 1: keys may be remembered, and have followers: once.sql
) strict, without rowid;

-- What is counted of each queue, changed in the commit that changes the jobs, so nobody ever has to scan. A name that
-- is not there counts 0.
--   state   how many jobs are in the state of this name
--   total   how often this happened: pushed, done, failed, dead, cancelled, lost, released
--   sign    other processes compare these with what they saw last: ready, jobs became waiting or let another one start;
--           soon, were scheduled and due within a second; finished, became done, dead or cancelled, or were removed;
--           stopped, were cancelled or removed while running; limits, how often limits or `paused` were set
create table millpond_counts (
  queue text    not null,
  kind  text    not null,
  name  text    not null,
  count integer not null,
  primary key (queue, kind, name)
) strict, without rowid;

-- What follows from a queue's row. limits: as JSON; null: none. held_until: when its rate and a pause allow a start of
-- cost 1, as they are kept. A rate counts no further ahead than full_span (microseconds).
create view millpond_limits as
select *,
  ifnull((select count from millpond_counts where queue = millpond_queues.name and kind = 'state' and name = 'running'), 0) as running,
  case when coalesce(most, rate) is not null or grouped = 1 then json_object(
    'running', most, 'rate', json(rate), 'grouped', json(iif(grouped, 'true', 'false')),
    'groupRunning', group_most, 'groupRate', json(group_rate)
  ) end as limits,
  max(rate_burst, full_cost) * rate_step as full_span,
  max(paused_until, ifnull(("full" - (rate_burst - 1) * rate_step + 999) / 1000, 0)) as held_until
from millpond_queues;

-- A row per schedule. SQLite knows of its times only the next one: see schedules.sql.
create table millpond_schedules (
  name        text    primary key,
  version     text    not null,                         -- of what is declared; former: JSON list of those it replaced
  former      text    not null default '[]',
  "when"      text    not null,                         -- a cron line or an interval, and the zone of the line
  tz          text    not null,
  missed      text    not null,                         -- once, skip, all
  jitter      integer not null,
  "from"      integer,
  until       integer,
  paused      integer not null,
  planned     integer not null default 0,               -- 0: since next_at nobody has computed when it fires
  next_at     integer,                                  -- when it fires next; null: never again
  changed_at  integer not null,
  seen_at     integer not null,                         -- when code last declared it
  last_at     integer,                                  -- when it last fired
  -- The job it pushes, as in millpond_jobs; null attempts and timeout: the queue's.
  queue       text    not null,
  priority    integer not null,
  key         text,
  "group"     text,
  cost        integer not null,
  attempts    integer,
  timeout     integer,
  encoding    text    not null,
  data        any     not null
) strict, without rowid;
create index millpond_next on millpond_schedules (next_at) where paused = 0 and next_at is not null;

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
  remember          integer,                            -- how long its key is remembered, in ms after the end; below 0: after the push
  follow_due        integer,                            -- of a follower: from when it may start, once its key is free; null: it is none
  "group"           text,
  cost              integer not null default 1,
  line              integer,                            -- id of its group, where it waits or runs in a grouped queue; null: no line yet
  trace             text,
  encoding          text    not null,                   -- json (text), msgpack or bytes (blobs)
  data              any     not null,
  progress_encoding text,
  progress          any,
  result_encoding   text,
  result            any,
  error             text,                               -- JSON: code, name, message, stack
  log               text,                               -- JSON: its lines, as a list of texts; null: none
  -- Whatever wrote a job, a process can read it. Of text, length counts characters.
  constraint payload_too_large  check (length(data) <= 16777216),
  constraint progress_too_large check (length(progress) <= 16777216),
  constraint result_too_large   check (length(result) <= 16777216),
  constraint error_too_large    check (length(error) <= 1048576)
) strict;

-- Each index holds only the jobs in its own state, so what it serves costs the same whatever else is stored.
create index millpond_waiting   on millpond_jobs (queue, line, priority desc) where state = 'waiting';
create index millpond_scheduled on millpond_jobs (queue, due_at)              where state = 'scheduled';
create index millpond_running   on millpond_jobs (queue, lease_until)         where state = 'running';
-- Serves both the lists that people read and the removal of what was kept long enough.
create index millpond_finished  on millpond_jobs (queue, state, finished_at)  where finished_at is not null;
-- At most one live job per queue and key, and one follower.
create unique index millpond_keys on millpond_jobs (queue, key)
  where key is not null and follow_due is null and state in ('scheduled', 'waiting', 'running');
create unique index millpond_followers on millpond_jobs (queue, key) where follow_due is not null;

-- Keys of jobs that have ended: once.sql.
create table millpond_remembered (
  queue text    not null,
  key   text    not null,
  id    text    not null,
  until integer not null,
  primary key (queue, key)
) strict, without rowid;
create index millpond_remembered_until on millpond_remembered (until);

-- For people: the jobs, with data, progress and result as JSON, or null where they are bytes. In the table itself one
-- row with bytes would make `data ->> 'name'` fail for all, as SQLite takes a blob for JSON in a binary form of its
-- own.
create view millpond_readable as
select
  id, queue, state, priority, attempt, attempts, pushed_at, due_at, started_at, finished_at, worker, key, "group", encoding,
  case when encoding = 'json' then data end as data,
  case when progress_encoding = 'json' then progress end as progress,
  case when result_encoding = 'json' then result end as result,
  error, log
from millpond_jobs;

-- How long jobs waited and ran, per minute. The minute leads, so that old ones leave as one range.
create table millpond_histograms (
  minute   integer not null,                            -- whole minutes since 1970; -1: all older ones
  queue    text    not null,
  priority integer not null,
  metric   text    not null,                            -- wait or run
  bucket   integer not null,
  count    integer not null,
  primary key (minute, queue, priority, metric, bucket)
) strict, without rowid;

-- A row per group of a grouped queue. Between claims, all that happens to a group is that it is touched: only claims say who is eligible.
--   touched ──next claim──┬─► ticket: it may start its first job, which has this priority
--                         ├─► held_until: its rate or pause allows its first job then
--                         ├─► forget_at: no job waits or runs, and it has no limits of its own: the sweep may forget it then
--                         └─► none of these: as many jobs run as may
create table millpond_groups (
  id           integer primary key,                     -- groups that are new together lie together, as claims in turn find them
  queue        text    not null,
  name         text    not null,                        -- '': the jobs without a group
  running      integer not null default 0,
  touched      integer not null default 1,
  ticket       integer not null default -1,             -- a priority; -1: none
  turn         real    not null default 0,              -- its virtual time at the ticket's priority
  place        integer not null default 0,              -- the seq of its first waiting job, as of the last claim; 0: none
  cost         integer not null default 1,              -- of that job
  held_until   integer,
  forget_at    integer,
  "full"       integer not null default 0,              -- of its rate, in microseconds
  full_cost    integer not null default 1,
  paused_until integer not null default 0,
  pause_length integer not null default 0,
  weight       real    not null default 1,
  limits       text,                                    -- of its own, as JSON: running, rate, weight; null: as all groups of the queue
  most         integer,                                 -- `running` of those
  rate_step    integer,                                 -- what a start costs by `rate` of those, and its burst
  rate_burst   integer,
  unique (queue, name)
) strict;

create index millpond_touched on millpond_groups (queue)                           where touched = 1;
create index millpond_tickets on millpond_groups (queue, ticket desc, turn, place) where ticket >= 0;
create index millpond_held    on millpond_groups (queue, held_until)               where held_until is not null;
-- Groups to which nothing has happened since a claim found them idle.
create index millpond_idle    on millpond_groups (queue, forget_at)                where touched = 0 and forget_at is not null;

-- The virtual time of a group at each priority at which it has started jobs.
create table millpond_turns (
  group_id integer not null,
  priority integer not null,
  virtual  real    not null,
  primary key (group_id, priority)
) strict, without rowid;

create trigger millpond_group_removed after delete on millpond_groups begin
  delete from millpond_turns where group_id = old.id;
end;

-- What belongs to a queue goes with it. Programs that empty tables, as test suites do, leave no job whose queue is gone.
create trigger millpond_queue_removed after delete on millpond_queues begin
  delete from millpond_jobs where queue = old.name
    and exists (select 1 from millpond_counts where queue = old.name and kind = 'state' and count > 0);
  delete from millpond_counts where queue = old.name;
  delete from millpond_histograms where queue = old.name;
  delete from millpond_groups where queue = old.name;
  delete from millpond_virtual where queue = old.name;
end;

-- The virtual time of a grouped queue at each priority.
create table millpond_virtual (
  queue    text    not null,
  priority integer not null,
  virtual  real    not null,
  primary key (queue, priority)
) strict, without rowid;

-- The workers of all processes, as each process tells of its own.
create table millpond_workers (
  id    text    not null,
  queue text    not null,
  host  text    not null,
  pid   integer not null,
  slots integer not null,                               -- how many jobs or batches it runs at once
  busy  integer not null,                               -- how many of them are taken
  since integer not null,                               -- first heard of
  seen  integer not null,                               -- last heard of
  primary key (id, queue)
) strict, without rowid;

-- Per group: the limits that hold for it, and its first job. is_free: 1 if that job waits for a time at most, not for a
-- slot; see start_at in limits/place. full_span and credit: how far ahead "full" counts, and how long before it the
-- first job may start, in microseconds.
create view millpond_heads as
select *,
  place is not null and (most is null or running < most) as is_free,
  max(burst, full_cost) * step as full_span, (max(burst, cost) - cost) * step as credit
from (
  select
    g.id, g.queue, g.name, g.running, g.ticket, g.turn, g."full", g.full_cost, g.paused_until, g.pause_length, g.limits,
    ifnull(g.most, case when g.name <> '' then q.group_most end) as most,
    case when g.rate_step is not null then g.rate_step when g.name <> '' then q.group_step end as step,
    case when g.rate_step is not null then g.rate_burst when g.name <> '' then q.group_burst end as burst,
    first.seq as place, first.priority, first.cost
  from millpond_groups as g cross join millpond_queues as q on q.name = g.queue
  left join millpond_jobs as first on first.seq = (
    select seq from millpond_jobs indexed by millpond_waiting
    where queue = g.queue and line = g.id and state = 'waiting'
    order by priority desc, seq
    limit 1
  )
);
