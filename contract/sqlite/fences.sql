-- fences: the floor above which fences are given out. A power cut may undo claims, since they do not wait for the disk.
-- In:  boot: differs after every start of the machine.
-- Out: of `floor`: current: 1 if this start is known; fences: the floor.
-- Invariant: what `raise` and `boot` change is on the disk before any fence above the floor is given out.

-- @statement floor
select
  ifnull((select value from millpond_meta where key = 'boot') = :boot, 0) as current,
  cast(ifnull((select value from millpond_meta where key = 'fences'), 0) as integer) as fences

-- @statement raise
-- If the file was open before another start of the machine. Fewer jobs than this can be claimed in the moments that a power cut undoes.
insert into millpond_meta (key, value)
select 'fences', 100000 from millpond_meta where key = 'boot' and value <> :boot
on conflict do update set value = value + excluded.value

-- @statement boot
insert into millpond_meta (key, value) values ('boot', :boot) on conflict do update set value = excluded.value
