-- recovery: what becomes of a schema that was restored, copied, emptied, or taken over by another server.
-- Fences must not repeat, pushes must not be lost, and the tables must have the rows that every operation counts on.
-- Claims look into the view `unharmed`, and call `recover` where it is empty: see `fence_floor` in 001_initial.sql. Libraries call
-- `installed` on each new connection of their own, and `adopt` where `install` is null.

-- Where the schema is: the server, the database, and the table itself, as a dump that is restored into the same database makes a new one.
create or replace function millpond.here() returns text
language sql stable as $$
  select system_identifier || '/' || (select oid from pg_database where datname = current_database()) || '/'
    || 'millpond.meta'::regclass::oid
  from pg_control_system()
$$;

-- install: null where nobody has adopted the schema yet: a restored copy, an emptied one, or one that a subscription has filled.
create or replace function millpond.installed() returns json
language sql stable security definer set search_path = millpond, pg_temp as $$
  select json_build_object('version', max(version), 'operations', max(operations), 'edition', max(edition),
    'install', case when count(*) = 1 and min(home) = millpond.here() then min(install::text) end) from meta
$$;

-- The rows of `segments`, where they were removed.
create or replace function millpond.mend_segments() returns void
language plpgsql as $$
begin
  lock table millpond.segments in share row exclusive mode;
  insert into millpond.segments (segment, used)
  select n, n >= 0 and exists (select from millpond.done where segment = n) from generate_series(-1, 8) as n on conflict do nothing;
  if not exists (select from millpond.segments where current) then
    update millpond.segments set current = true, used = true, closed_at = null, greatest = null, look_at = null where segment = 0;
  end if;
end $$;

-- The segment for jobs that are done now.
create or replace function millpond.current_segment() returns smallint
language plpgsql as $$
declare
  v_segment smallint;
begin
  select segment into v_segment from millpond.segments where current;
  if not found then
    perform millpond.mend_segments();
    select segment into v_segment from millpond.segments where current;
  end if;
  return v_segment;
end $$;

-- Makes the schema a store of its own, with all that its operations count on. Does nothing where that was done.
create or replace function millpond.adopt() returns void
language plpgsql security definer set search_path = millpond, pg_temp as $$
begin
  lock table meta in share row exclusive mode;
  if not exists (select from meta) then insert into meta (home) values (''); end if;
  -- A subscription brings a second row along.
  delete from meta where ctid <> (select ctid from meta order by fences desc, ctid limit 1);
  update meta set install = gen_random_uuid(), home = millpond.here() where home <> millpond.here();
  if not found then return; end if;
  delete from fence_floor;
  perform mend_segments();
  insert into lines (queue, line) select id, n from queues cross join (values (0), (1)) as line(n) on conflict do nothing;
  -- A subscription brings no values of sequences: the next job would wait before the marks, and the next queue have the id of another.
  perform setval('place', greatest((select last_value from place), (select max(place) from waiting), (select max(place) from running),
    (select max(place) from journals)));
  perform setval('move', greatest((select last_value from move), (select max(id) from moves)));
  perform setval(pg_get_serial_sequence('millpond.queues', 'id'), (select max(id) from queues)) where exists (select from queues);
  perform setval(pg_get_serial_sequence('millpond.arrivals', 'id'), (select max(id) from arrivals)) where exists (select from arrivals);
  perform setval(pg_get_serial_sequence('millpond.ended', 'id'), (select max(id) from ended)) where exists (select from ended);
  update lines set places = default where places <> '{0,0,0,0,0,0,0,0,0,0}';
  -- The marks of sweeps in a dump are younger than its jobs.
  perform setval('swept_whole', 0), setval('swept_moves', 0);
end $$;

-- The first claim after a crash, a start of the server, a restore. Claims wait for no fsync, and a restore brings older claims back:
-- fences up to some way above the last ones known were given out. Those from now on lie above the milliseconds since 1970, as no job is
-- claimed a thousand times a second: so they are above all of any other life of this schema.
create or replace function millpond.recover() returns bigint
language plpgsql as $$
declare
  v_fences bigint;
begin
  perform millpond.adopt();
  delete from millpond.fence_floor;
  update millpond.meta set fences = greatest(fences + 100000, millpond.time_of(null)) returning fences into v_fences;
  insert into millpond.fence_floor (fences) values (v_fences);
  return v_fences;
end $$;
