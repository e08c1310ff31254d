-- lines: where a queue's jobs wait. Part of every operation after which jobs wait, and of claim.
-- Line 0 holds jobs as they were pushed, whose places rise; they may be committed in another order. Jobs that came back (retries, releases,
-- lost leases, promotions, requeues) keep their places, so they go into a line of their own. One line at a time takes them. Once many of
-- its jobs were claimed it is closed, and the next one opened: from then on jobs only leave it, so its marks can be moved up.
-- The jobs of a grouped queue are all in line -1, in which turns.sql finds them; its marks stay where they are.
-- Invariant: no job of a line waits before its marks, nor will one that is on its way.

-- The line for a job that comes back. It stays open until the transaction ends.
create or replace function millpond.line_back(p_queue integer) returns integer
language plpgsql as $$
begin
  perform millpond.read_committed();
  perform pg_advisory_xact_lock_shared(hashtext('millpond line'), p_queue);
  return (select case when limits = 'groups' then -1 else line end from millpond.queues where id = p_queue);
end $$;

-- Whether the marks are to be moved up after this job left its line: after each few thousand. Of those that came back by a hash, since
-- they may be every tenth job, whose places would hardly ever be round.
create or replace function millpond.is_milestone(p_line integer, p_place bigint) returns boolean
language sql immutable as $$
  select case when p_line = 0 then p_place & 4095 else hashint8(p_place) & 1023 end = 0
$$;

-- Moves the marks of a queue's lines up to the first job that waits. Called after some thousand jobs left. `p_close`: many of them came
-- from the line that takes what comes back. In line 0 the marks do not pass places that an unfinished push may hold (`enter` in push.sql).
create or replace function millpond.advance(p_queue integer, p_close boolean) returns void
language plpgsql as $$
declare
  v_open  integer;
  v_bound bigint;
  v_line  record;
begin
  perform from millpond.lines where queue = p_queue and line = 0 for update skip locked;
  if not found then return; end if;
  select line into v_open from millpond.queues where id = p_queue;
  -- Nobody is about to put a job into it, nor holds the queue's row: configure may wait for this transaction there.
  if p_close and pg_try_advisory_xact_lock(hashtext('millpond line'), p_queue)
    and exists (select from millpond.queues where id = p_queue for no key update skip locked) then
    v_open := v_open + 1;
    insert into millpond.lines (queue, line) values (p_queue, v_open);
    update millpond.queues set line = v_open where id = p_queue;
  end if;
  select last_value into v_bound from millpond.place;
  -- Blocks begin anew after 2^31 of them. From -2^30 on: some were entered after the bound was taken.
  select least(v_bound,
    (v_bound >> 12) - max(((v_bound >> 12) - objid::bigint + 1073741824 & 2147483647) - 1073741824) << 12) into v_bound from pg_locks
  where locktype = 'advisory' and classid = hashtext('millpond')::oid and objsubid = 2
    and database = (select oid from pg_database where datname = current_database());
  -- New statements see every push that had ended when the bound was taken.
  for v_line in select line, places from millpond.lines where queue = p_queue and line <> v_open and line >= 0 order by line loop
    v_line.places := array(
      -- By the column: the name alone would be that of the expression, and every job of the line would be sorted.
      select greatest(mark.place, coalesce((
        select case when v_line.line = 0 then least(v_bound, place) else place end from millpond.waiting
        where queue = p_queue and line = v_line.line and state = 'waiting' and priority = (10 - mark.nth)::smallint and place >= mark.place
        order by waiting.place limit 1
      ), case when v_line.line = 0 then v_bound else 9223372036854775807 end))
      from unnest(v_line.places) with ordinality as mark(place, nth) order by mark.nth);
    if v_line.line > 0 and 9223372036854775807 = all (v_line.places) then
      delete from millpond.lines where queue = p_queue and line = v_line.line;
    else
      update millpond.lines set places = v_line.places where queue = p_queue and line = v_line.line and places <> v_line.places;
    end if;
  end loop;
end $$;
