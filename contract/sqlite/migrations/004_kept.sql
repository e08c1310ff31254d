-- What a job may ask for as long as it lives: what its parents came to (graphs.sql, and contract/graphs.md).

-- Done jobs that were kept long enough, and have a live child. Their own `finished_at` is null, so no list has them.
create table millpond_kept (
  seq         integer primary key,
  finished_at integer not null,
  child       integer not null,                         -- seq of a live child: of those before it none was live
  look_at     integer not null                          -- when a sweep looks whether it still has one
) strict;
create index millpond_kept_looks on millpond_kept (look_at);

-- Parents that are gone, of jobs that were live then. The rows go with the child.
create table millpond_gone (
  child  integer not null,                              -- seq
  parent text    not null,                              -- id
  primary key (child, parent)
) strict, without rowid;

-- As before; and where no job is left, none of these is.
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
  delete from millpond_kept where not exists (select 1 from millpond_jobs);
  delete from millpond_gone where not exists (select 1 from millpond_jobs);
end;
