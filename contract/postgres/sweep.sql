-- sweep: what time alone brings about.
-- In:  limit. lease_from, due_from: leases and due times before these were dealt with by an earlier sweep of this caller, or null: a hint
--      that spares the scan what is over, where an old transaction keeps vacuum from removing it.
-- Out: JSON: now; lost (id queue attempt state); promoted, and the queues with new work; expired; more; nextDue.
--      queues: how many there are.
-- After it, once a minute or so, `idle_queues` and `remove_queues`.
-- Invariant: each touches at most `limit` jobs; emptying a slot of `done` touches none. Any number of processes may sweep at once.

-- Slots of `done` take turns. A sixth of the longest keeping time each, so that done jobs outlive theirs by that much at the most.
create or replace function millpond.turn_slots(p_now bigint, p_keep bigint) returns bigint
language plpgsql as $$
declare
  v_slot    record;
  v_next    smallint;
  v_expired bigint := 0;
  v_timeout text := current_setting('lock_timeout');
begin
  select * into v_slot from millpond.slots where current;
  if v_slot.opened_at is null or pg_relation_size('millpond.done_' || v_slot.slot) = 0 then
    if v_slot.opened_at is null or p_now - v_slot.opened_at > 60000 then
      update millpond.slots set opened_at = p_now where slot = v_slot.slot;
    end if;
  elsif p_now - v_slot.opened_at >= greatest(60000, p_keep / 6) then
    select slot into v_next from millpond.slots where not used order by slot limit 1;
    if found then
      update millpond.slots set current = false, closed_at = p_now where slot = v_slot.slot;
      update millpond.slots set current = true, used = true, opened_at = p_now, closed_at = null, greatest = null where slot = v_next;
    end if;
  end if;
  -- Not at once: a completion that began before may still be on its way into it.
  update millpond.slots as s
    set greatest = coalesce((select id from millpond.done where done.slot = s.slot order by id desc limit 1), '00000000-0000-0000-0000-000000000000')
    where used and not current and greatest is null and closed_at < p_now - 60000;
  for v_slot in
    select * from millpond.slots where used and not current and greatest is not null and closed_at + p_keep <= p_now
  loop
    begin
      perform set_config('lock_timeout', '100ms', true);
      execute 'truncate millpond.done_' || v_slot.slot;
      select v_expired + coalesce(sum(done), 0) into v_expired from millpond.counts where slot = v_slot.slot;
      insert into millpond.counts (queue, slot, done)
        select queue, slot, -sum(done) from millpond.counts where slot = v_slot.slot group by queue, slot;
      update millpond.slots set used = false, greatest = null, opened_at = null, closed_at = null where slot = v_slot.slot;
    exception when lock_not_available then
      null; -- Somebody reads it, for very long: another time.
    end;
  end loop;
  perform set_config('lock_timeout', v_timeout, true);
  return v_expired;
end $$;

-- What one process at a time does: removes what was kept long enough, sums up the counts.
create or replace function millpond.tidy(p_limit integer, p_now bigint) returns bigint
language plpgsql set enable_bitmapscan = on
as $$
#variable_conflict use_column
declare
  v_keep    bigint;
  v_slot    smallint;
  v_small   boolean;
  v_queue   record;
  v_expired bigint := 0;
  v_count   bigint := 0;
  v_gone    bigint;
begin
  if not pg_try_advisory_xact_lock(hashtext('millpond tidy'), 0) then return 0; end if;
  select coalesce(max(keep_done), 0) into v_keep from millpond.queues;
  v_expired := millpond.turn_slots(p_now, v_keep);
  -- Row by row where that costs little, or where the slot will be emptied only much later for the sake of another queue.
  for v_slot in select slot from millpond.slots where used order by opened_at loop
    v_small := pg_relation_size('millpond.done_' || v_slot) < 8388608;
    continue when pg_relation_size('millpond.done_' || v_slot) = 0;
    for v_queue in select id, keep_done from millpond.queues where v_small or keep_done * 2 < v_keep loop
      exit when v_count >= p_limit;
      delete from millpond.done where slot = v_slot and id = any (array(
        select id from millpond.done
        where slot = v_slot and queue = v_queue.id and finished_at <= p_now - v_queue.keep_done
        order by finished_at limit p_limit - v_count));
      get diagnostics v_gone = row_count;
      if v_gone > 0 then
        insert into millpond.counts (queue, slot, done) values (v_queue.id, v_slot, -v_gone);
        v_count := v_count + v_gone;
      end if;
    end loop;
  end loop;
  v_expired := v_expired + v_count;
  with gone as (
    delete from millpond.retired where ctid = any (array(
      select old.ctid from millpond.queues as q
      cross join unnest(array['dead', 'cancelled']) as final(state)
      cross join lateral (
        select ctid from millpond.retired
        where queue = q.id and state = final.state and finished_at <= p_now - q.keep_dead
        order by finished_at limit p_limit - v_count
        for update skip locked
      ) as old limit p_limit - v_count))
    returning queue, state
  ), noted as (
    insert into millpond.counts (queue, dead, cancelled)
    select queue, -count(*) filter (where state = 'dead'), -count(*) filter (where state = 'cancelled') from gone group by queue
  )
  select v_expired + count(*) into v_expired from gone;
  delete from millpond.histograms where minute <= p_now / 60000 - 60;
  delete from millpond.repeats where at <= p_now - 3600000;
  if (select count(*) from millpond.counts) > 16 + 2 * (select count(distinct (queue, slot)) from millpond.counts) then
    with summed as (delete from millpond.counts returning *)
    insert into millpond.counts
    select queue, slot, sum(scheduled), sum(waiting), sum(running), sum(done), sum(dead), sum(cancelled),
      sum(ready), sum(room), sum(finished), sum(stopped)
    from summed group by queue, slot;
  end if;
  return v_expired;
end $$;

create or replace function millpond.sweep(
  "limit" integer, lease_from bigint default null, due_from bigint default null, now bigint default null
) returns json
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now      bigint := time_of(sweep.now);
  v_lost     json[] := '{}';
  v_work     text[] := '{}';
  v_promoted bigint := 0;
  v_expired  bigint;
  v_name     text;
  v_keep     bigint;
  v_state    text;
  v_next     bigint;
  job        running%rowtype;
  moved      record;
begin
  perform set_config('synchronous_commit', 'off', true);
  for moved in
    with promoted as (
      update waiting set scheduled = false, lane = 1 where ctid = any (array(
        select due.ctid from queues as q cross join lateral (
          select ctid from waiting
          where queue = q.id and scheduled and due_at <= v_now and due_at >= coalesce(sweep.due_from, 0)
          order by due_at, seq limit sweep."limit"
          for update skip locked
        ) as due limit sweep."limit"))
      returning queue
    ), summed as (
      select queue, count(*) as count from promoted group by queue
    ), noted as (
      insert into counts (queue, scheduled, waiting, ready) select queue, -count, count, count from summed
    )
    select q.name, summed.count from summed join queues as q on q.id = summed.queue
  loop
    v_promoted := v_promoted + moved.count;
    v_work := v_work || moved.name;
  end loop;
  for job in
    select late.* from queues as q cross join lateral (
      select * from running
      where queue = q.id and lease_until <= v_now and lease_until >= coalesce(sweep.lease_from, 0)
      order by lease_until, seq limit sweep."limit"
      for update skip locked
    ) as late limit sweep."limit"
  loop
    delete from running where id = job.id;
    select name, keep_dead into v_name, v_keep from queues where id = job.queue;
    if job.attempt >= job.attempts then
      v_state := 'dead';
      job.error := json_build_object('code', 'LeaseLost', 'name', 'MillpondError', 'message', 'Worker ' || job.worker || ' fell silent.');
      perform retire(job, 'dead', v_now, v_keep);
    else
      v_state := 'waiting';
      job.due_at := v_now;
      perform put_back(job, false);
      v_work := v_work || v_name;
    end if;
    v_lost := v_lost || json_build_object('id', job.id, 'queue', v_name, 'attempt', job.attempt, 'state', v_state);
  end loop;
  v_expired := tidy(sweep."limit", v_now);
  for v_name in select distinct unnest(v_work) loop
    perform ring_work(v_name, true);
  end loop;
  select min(due.due_at) into v_next from queues as q cross join lateral (
    select due_at from waiting
    where queue = q.id and scheduled and due_at >= coalesce(sweep.due_from, 0) order by due_at, seq limit 1
  ) as due;
  return json_build_object('now', v_now, 'lost', v_lost, 'promoted', v_promoted, 'work', v_work, 'expired', v_expired,
    'more', greatest(v_promoted, cardinality(v_lost), v_expired) >= sweep."limit",
    'nextDue', case when v_next is not null then greatest(v_next - v_now, 0) end,
    'queues', (select count(*) from queues));
end $$;

-- Queues without a job in any state whose settings all are the default. Who sweeps asks for them, and removes those that it has found each
-- time for an hour.
-- In:  limit. Out: names, in no particular order.
create or replace function millpond.idle_queues("limit" integer) returns setof text
language plpgsql security definer
set search_path = millpond, pg_temp set jit = off
as $$
#variable_conflict use_column
begin
  return query
    select q.name from queues as q left join (
      select queue, sum(scheduled + waiting + running + done + dead + cancelled) as jobs from counts group by queue
    ) as summed on summed.queue = q.id
    where q.capacity is null and q.keep_done = 3600000 and q.keep_dead = 604800000 and not q.paused and coalesce(summed.jobs, 0) = 0
    limit idle_queues."limit";
end $$;

-- In:  names. Out: those that were removed, with all that was measured in them; none while any push is under way: another time, then.
-- Invariant: no push loses its queue. Every push, and every configure, holds the lock of `enter` from before it looks for its queue to the
--      end of its transaction. Here it is held alone, so that nobody is in between; who comes then finds no queue, and makes one.
create or replace function millpond.remove_queues(names text[]) returns setof text
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set jit = off
as $$
#variable_conflict use_column
declare
  v_place integer;
  v_queue integer;
  v_name  text;
begin
  -- What was pushed since this began must be seen.
  if current_setting('transaction_isolation') <> 'read committed' then return; end if;
  if not pg_try_advisory_xact_lock(hashtext('millpond tidy'), 0) then return; end if;
  select last_value >> 12 into v_place from place;
  -- The one before, too: somebody may have read the place, and be about to enter.
  if not pg_try_advisory_xact_lock(hashtext('millpond'), v_place - 1) or not pg_try_advisory_xact_lock(hashtext('millpond'), v_place)
  then return; end if;
  -- Somebody may have entered at an earlier place. If nobody has, nobody raises the place, and who comes from now on waits for us.
  if exists (
      select from pg_locks
      where locktype = 'advisory' and classid = hashtext('millpond')::oid and objsubid = 2 and granted and pid <> pg_backend_pid()
        and database = (select oid from pg_database where datname = current_database()))
    or v_place <> (select last_value >> 12 from place)
  then return; end if;
  for v_name in select name from idle_queues(2147483647) as idle(name) where name = any (remove_queues.names) loop
    select id into v_queue from queues where name = v_name;
    continue when exists (select from waiting where queue = v_queue and not scheduled)
      or exists (select from waiting where queue = v_queue and scheduled)
      or exists (select from running where queue = v_queue) or exists (select from retired where queue = v_queue);
    delete from queues where id = v_queue;
    delete from marks where queue = v_queue;
    delete from counts where queue = v_queue;
    delete from histograms where queue = v_queue;
    return next v_name;
  end loop;
  -- Also of workers that wait at queues that never came. Who is still there is noted again with the next claim.
  delete from sleepers where not exists (select from queues where name = sleepers.queue);
end $$;
