-- Graphs: jobs that wait for others, their parents (graphs.sql, and contract/graphs.md).
-- Links name jobs by their places, as these are short. With a job that is removed go its links to its parents, and what is left of those to
-- its children has later places: so the place is given to another job only when no link has it.

alter table millpond_queues add column graphs integer not null default 0;  -- 1: a job of it has or had a parent or a child

-- A blocked job has its key like every live one.
drop index millpond_keys;
create unique index millpond_keys on millpond_jobs (queue, key)
  where key is not null and follow_due is null and state in ('blocked', 'scheduled', 'waiting', 'running');
create index millpond_blocked on millpond_jobs (queue) where state = 'blocked';

-- A row per pair of jobs. A blocked job has at least one open link; what is open of other jobs means nothing.
--   open   0 or below: the child does not wait for the parent any more; 1: it is cancelled if the parent fails; 2: it runs even so
create table millpond_links (
  parent integer not null,                              -- seq; below 0: of a job that is awaited, see millpond_awaited
  child  integer not null,                              -- seq
  open   integer not null,
  primary key (parent, child)
) strict, without rowid;
create index millpond_parents on millpond_links (child, open);

-- Jobs that others wait for, and that are not there yet: only of restored ones.
create table millpond_awaited (
  parent text    primary key,                           -- id
  node   integer not null unique                        -- stands for its place; below 0
) strict, without rowid;
-- An awaited job may come into any queue.
create trigger millpond_queue_awaits after insert on millpond_queues when exists (select 1 from millpond_awaited) begin
  update millpond_queues set graphs = 1 where name = new.name;
end;

-- Jobs that have ended, and of whose links a part is left for sweeps: those of the children with after < seq <= until.
create table millpond_ended (
  number integer primary key,                           -- they are settled in this order
  parent integer not null,
  id     text    not null,
  state  text    not null,                              -- done, dead, cancelled; removed: it was live; gone: it was not, and its links go
  after  integer not null,
  until  integer not null
) strict;
create index millpond_ended_parent on millpond_ended (parent);

-- As before; and where no job is left, no link is.
drop trigger millpond_queue_removed;
create trigger millpond_queue_removed after delete on millpond_queues begin
  delete from millpond_jobs where queue = old.name
    and exists (select 1 from millpond_counts where queue = old.name and kind = 'state' and count > 0);
  delete from millpond_counts where queue = old.name;
  delete from millpond_histograms where queue = old.name;
  delete from millpond_groups where queue = old.name;
  delete from millpond_virtual where queue = old.name;
  delete from millpond_links where not exists (select 1 from millpond_jobs);
  delete from millpond_ended where not exists (select 1 from millpond_jobs);
end;
