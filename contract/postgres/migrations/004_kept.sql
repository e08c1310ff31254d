-- What a job may ask for as long as it lives: what its parents came to. See graphs.sql.

alter table millpond.meta alter version set default 4;

-- Done jobs that were kept long enough, and have a live child. No list and no count has them.
create table millpond.done_8 partition of millpond.done for values in (8);
alter table millpond.done_8 replica identity full;
insert into millpond.segments (segment) values (8);

alter table millpond.link_walk
  add column began_at  bigint,                         -- when the present walk began
  add column walked_at bigint;                         -- when the last one that has ended began
