-- park: claims end without their jobs, which wait for a time, for signals, or for other jobs: contract/steps.md.
-- In:  queue; items: JSON list of id, fence, log, until, signals, after, entries (name, meta, and body, a tagged text or null), reason.
-- Out: a text per item: ok; stale; full; held: another transaction has the job or its journal, and nothing was changed.
-- Invariant: the row of the job, then that of its journal: see journals.sql. Parents that run are locked `for key share`, so that their
--      endings see the link. Of one that somebody holds for longer than a moment, and of those that do not run, a sweep looks: graphs.sql.
--      A parent that is gone has ended, as its child runs whatever became of it: so none has to stay until the commit.

-- Jobs that are not parked any more, though they have the fence of their last park.
create or replace function millpond.unpark(p_places bigint[]) returns void
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off
as $$
begin
  update millpond.journals set parked = null where ctid = any (array(
    select ctid from millpond.journals where place = any (p_places) and parked is not null order by id for update skip locked));
end $$;

-- Those of these jobs that are live. held: those of them that run and stay until the commit.
create or replace function millpond.live_parents(p_ids uuid[], out live uuid[], out held uuid[])
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_patience constant text := current_setting('lock_timeout');
begin
  live := '{}';
  held := '{}';
  if cardinality(p_ids) = 0 then return; end if;
  held := array(select id from millpond.running where id = any (p_ids) order by id for key share skip locked);
  if exists (select from millpond.running where id = any (p_ids) and id <> all (held)) then
    begin
      perform set_config('lock_timeout', '100ms', true);
      held := array(select id from millpond.running where id = any (p_ids) order by id for key share);
      perform set_config('lock_timeout', v_patience, true);
    exception when lock_not_available or deadlock_detected then null;
    end;
  end if;
  -- In a statement of its own: it sees what was committed before the rows were locked.
  live := array(
    select id from millpond.waiting where id = any (p_ids) union select id from millpond.running where id = any (p_ids) order by 1);
end $$;

-- A job that was just put back as blocked waits for these, whatever becomes of them. p_held: as of live_parents.
create or replace function millpond.wait_again(p_id uuid, p_live uuid[], p_held uuid[]) returns void
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
begin
  -- Those of parents that ended while it was cancelled, and that a sweep is still to settle, are not waited for.
  update millpond.links set is_open = cardinality(coalesce(remaining, links.children)) > 1,
    remaining = array_remove(coalesce(remaining, links.children), p_id)
  where ctid = any (array(
    select links.ctid from millpond.links join millpond.children on children.id = p_id and links.parent = any (children.after)
    where is_open and p_id = any (coalesce(remaining, links.children)) for update of links skip locked));
  insert into millpond.links (parent, children, is_open) select id, array[p_id], true from unnest(p_live) as given(id);
  insert into millpond.children as known (id, queue, place, is_blocked, waits_for, on_dead, after)
  select id, queue, place, true, cardinality(p_live), 'run', p_live from millpond.waiting where id = p_id
  on conflict (id) do update set queue = excluded.queue, place = excluded.place, is_blocked = true, waits_for = excluded.waits_for,
    on_dead = 'run', after = case when known.place = excluded.place
      then array(select unnest(known.after) union select unnest(excluded.after)) else excluded.after end;
  perform millpond.expect_children(array(
    select queue from millpond.waiting where id = any (p_live) union select queue from millpond.running where id = any (p_live)));
  insert into millpond.ended (parent, state) select id, 'unsure' from unnest(p_live) as given(id) where id <> all (p_held);
end $$;

create or replace function millpond.park(queue text, items json, now bigint default null) returns text[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_latest   constant bigint := 3155760000000;
  v_now      bigint := hold_time('due', park.now);
  v_outcomes text[] := array_fill('stale'::text, array[json_array_length(park.items)]);
  v_queue    integer;
  v_ring     boolean := false;
  v_until    bigint;
  v_state    text;
  v_full     integer[];
  parents    record;
  held       record;
  job        running%rowtype;
begin
  perform read_committed();
  select id into v_queue from queues where name = park.queue;
  for held in
    select given.* from rows from (json_to_recordset(park.items)
      as (id uuid, fence bigint, log text, until bigint, signals bigint, after uuid[], entries json, reason text))
      with ordinality as given(id, fence, lines, until, signals, after, entries, reason, nth) order by id
  loop
    v_until := least(coalesce(held.until, v_now + v_latest), 8640000000000000);
    if cardinality(held.after) > 10000 then
      raise exception 'InvalidOption: after has 10000 ids at most' using errcode = '22023';
    end if;
    select * into job from running where id = held.id and fence = held.fence and queue + 0 = v_queue for update skip locked;
    if not found then
      if exists (select from running where id = held.id and fence = held.fence and queue + 0 = v_queue) then
        v_outcomes[held.nth] := 'held';
      end if;
      continue;
    end if;
    if not expect_journals(v_queue, false) or cardinality(hold_journals(array[job.id], array[job.place])) = 0 then
      v_outcomes[held.nth] := 'held';
      continue;
    end if;
    v_full := '{}';
    if json_array_length(held.entries) > 0 then
      select add_entries(array[job.place], array_agg(1), array_agg(name order by nth), array_agg(meta order by nth),
        array_agg(body order by nth)) into v_full
      from rows from (json_to_recordset(held.entries) as (name text, meta text, body text)) with ordinality as each(name, meta, body, nth);
    end if;
    if v_full <> '{}' then
      v_outcomes[held.nth] := 'full';
      continue;
    end if;
    delete from running where id = job.id;
    v_ring := v_ring or job.line < 0;
    if held.lines is not null then job.log := log_with(job.log, held.lines); end if;
    job.worker := null;
    job.started_at := null;
    job.attempt := job.attempt - 1;
    job.due_at := v_now;
    select * into parents from live_parents(held.after);
    if parents.live <> '{}' then v_state := 'blocked';
    elsif cardinality(held.after) > 0 or v_until <= v_now
      or exists (select from journals where place = job.place and signals > held.signals) then v_state := 'waiting';
    else
      v_state := 'scheduled';
      job.due_at := v_until;
    end if;
    perform put_back(job, v_state, 'park');
    if v_state = 'blocked' then perform wait_again(job.id, parents.live, parents.held); end if;
    update journals set parked = held.reason, park_fence = job.fence where place = job.place;
    v_ring := v_ring or v_state <> 'blocked' and job.due_at < v_now + 1000;
    v_outcomes[held.nth] := 'ok';
  end loop;
  if v_ring then perform ring('work', park.queue); end if;
  return v_outcomes;
end $$;
