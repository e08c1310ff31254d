-- fences: the floor above which fences are given out. Claims that a power cut or a restored backup has undone had no fence above it.
-- In:  origin: differs after every start of the machine, for another file, and after a restore into the open file; now.
-- Out: of `schema`: a number that SQLite changes with every restore and every change of a table; of `floor`: current: 1
--      if the origin is known; fences: the floor.
-- Invariant: what `raise` and `origin` change is on the disk before a client that opens the file gives out a fence above the floor.

-- @statement schema
select schema_version as schema from pragma_schema_version

-- @statement floor
select
  ifnull((select value from millpond_meta where key = 'origin') = :origin, 0) as current,
  cast(ifnull((select value from millpond_meta where key = 'fences'), 0) as integer) as fences

-- @statement raise
-- To the time in microseconds: above all that was given out before, also where the file has forgotten how much that was. A clock
-- that was set back still raises it by more than can be claimed in the moments that a power cut undoes. In a finer unit than that step, the
-- time stays ahead also of programs that open the file several times a second.
insert into millpond_meta (key, value) values ('fences', cast(:now * 1000 as integer))
on conflict do update set value = max(value + 100000, excluded.value)

-- @statement origin
insert into millpond_meta (key, value) values ('origin', :origin) on conflict do update set value = excluded.value
