-- Jobs that wait for other jobs: see graphs.sql. The row of a job that waits for others is in `waiting`, with the state `blocked`: neither
-- claims nor sweeps look for that one, and its index entries do not grow with what it waits for.

alter table millpond.meta alter version set default 2;

-- Of each job that waits, or waited, for others.
create table millpond.children (
  id         uuid    primary key,
  queue      integer not null,
  place      bigint  not null,
  is_blocked boolean not null,
  waits_for  integer not null,                         -- how many of its links are open
  on_dead    text    collate "C" not null check (on_dead in ('cancel', 'run')),
  after      uuid[]  not null                          -- its parents
) with (fillfactor = 80);
create index children_blocked on millpond.children (queue, place) where is_blocked;

-- Links of a parent, in a row for those that were pushed together: two index entries for each link would take as long as the jobs.
-- Who closes some of them holds the row.
create table millpond.links (
  parent    uuid    not null,
  children  uuid[]  not null,
  is_open   boolean not null,                          -- some of them are open
  remaining uuid[]                                     -- those that are, null: all. A child that does not wait is none of them
) with (fillfactor = 80);
create index links_parent on millpond.links (parent);

-- Queues with a job that has, or had, a child. 0: any queue may have one; -1: the same, and sweeps find out whether that is over. A queue
-- may be there twice: a row with a unique name would make one push wait for another one's transaction.
create table millpond.parents (
  queue integer not null
);
create index parents_queue on millpond.parents (queue);

-- What sweeps settle: jobs that have ended and have open links. And jobs that may have ended while somebody made a link to them.
create table millpond.ended (
  id     bigint generated always as identity primary key,
  parent uuid   not null,
  -- What it ended as: done, dead, cancelled, removed. `unsure`: a push saw it live, `unknown`: a restore did not find it.
  state  text   collate "C" not null
);

-- How far the sweeps have come that remove what is known of jobs that are gone.
create table millpond.link_walk (
  parent  uuid,                                        -- up to which links were looked at, and children; null: none yet
  child   uuid,
  next_at bigint not null
);

alter table millpond.children set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0);
alter table millpond.ended set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0);
alter table millpond.link_walk set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
alter table millpond.links replica identity full;
alter table millpond.parents replica identity full;
alter table millpond.link_walk replica identity full;

-- It has more parameters now.
drop function if exists millpond.push(text, text, integer, bigint, timestamptz, text, text, integer, bigint, text, uuid, integer);
drop function if exists millpond.push(text, json, integer, bigint, timestamptz, text, text, integer, bigint, text, uuid, integer);
drop function if exists millpond.push(text, jsonb, integer, bigint, timestamptz, text, text, integer, bigint, text, uuid, integer);
