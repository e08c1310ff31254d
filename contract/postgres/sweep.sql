-- sweep: what time alone brings about.
-- In:  limit.
-- Out: JSON: now; lost (id queue attempt state); promoted; work, the queues with new work; expired; more; nextDue; queues: how many there
--      are.
-- Invariant: each touches at most `limit` jobs, and 1,000 links of jobs that have ended; emptying a segment of `done` touches none. Any
--      number of processes may sweep at once. Where nothing is due the cost is the same for any number of queues and jobs.

-- Segments of `done` take turns. A sixth of the longest keeping time each, so that done jobs outlive theirs by that much at the most.
create or replace function millpond.rotate_segments(p_now bigint, p_keep bigint) returns bigint
language plpgsql as $$
declare
  v_segment record;
  v_next    smallint;
  v_expired bigint := 0;
begin
  select * into v_segment from millpond.segments where current;
  if v_segment.opened_at is null or pg_relation_size('millpond.done_' || v_segment.segment) = 0 then
    if v_segment.opened_at is null or p_now - v_segment.opened_at > 60000 then
      update millpond.segments set opened_at = p_now where segment = v_segment.segment;
    end if;
  elsif p_now - v_segment.opened_at >= greatest(60000, p_keep / 6) then
    select segment into v_next from millpond.segments where segment between 0 and 7 and not used order by segment limit 1;
    if found then
      update millpond.segments set current = false, closed_at = p_now where segment = v_segment.segment;
      update millpond.segments set current = true, used = true, opened_at = p_now, closed_at = null, greatest = null, look_at = null
        where segment = v_next;
    end if;
  end if;
  -- Not at once: a completion that began before may still be on its way into it.
  update millpond.segments as s
    set greatest = coalesce((select id from millpond.done where done.segment = s.segment order by id desc limit 1),
      '00000000-0000-0000-0000-000000000000')
    where used and not current and greatest is null and closed_at < p_now - 60000;
  for v_segment in
    select * from millpond.segments where used and not current and greatest is not null and closed_at + p_keep <= p_now
      -- prune_links takes out before what children may ask for.
      and (not exists (select from millpond.links)
        or exists (select from millpond.link_walk where walked_at >= closed_at + p_keep and walked_at <= p_now))
  loop
    begin
      -- Where somebody reads it: another time. To wait would keep everybody else waiting behind this.
      execute 'lock table millpond.done_' || v_segment.segment || ' in access exclusive mode nowait';
    exception when lock_not_available then
      continue;
    end;
    execute 'truncate millpond.done_' || v_segment.segment;
    perform millpond.add_up(null);
    with gone as (
      select queue, sum(case when becomes = 'done' then count else -count end) as count
      from millpond.totals where segment = v_segment.segment and (becomes = 'done' or was = 'done') group by queue
    ), noted as (
      insert into millpond.moves (queue, segment, was, becomes, cause, count)
      select queue, v_segment.segment, 'done', 'gone', 'expire', count from gone where count > 0
    )
    select v_expired + coalesce(sum(count), 0) into v_expired from gone;
    update millpond.segments set used = false, greatest = null, opened_at = null, closed_at = null where segment = v_segment.segment;
  end loop;
  return v_expired;
end $$;

-- Removes from a segment what its queues have kept long enough, row by row, and notes before when there is no need to look again.
create or replace function millpond.expire(p_segment smallint, p_limit integer, p_now bigint, p_keep bigint) returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
  v_small   boolean := p_segment < 0 or pg_relation_size('millpond.done_' || p_segment) < 8388608;
  v_expired bigint  := 0;
  v_queues  bigint  := 0;
  v_next    bigint;
  v_first   bigint;
  v_gone    bigint;
  v_keep    bigint;
  v_state   text;
  v_ids     uuid[];
  v_live    uuid[];
  v_queue   record;
begin
  -- Whoever changes how long jobs are kept, or restores some, and has this looked at again, comes before or after this.
  perform from millpond.segments where segment = p_segment for no key update;
  -- What finishes from now on.
  select p_now + min(case when p_segment < 0 then keep_dead else keep_done end) into v_next
  from millpond.queues where case when p_segment < 0 then keep_dead else keep_done end > 0;
  for v_queue in
    select q.id, q.keep_done, q.keep_dead from (
      select queue from (
        select queue, case when becomes in ('done', 'dead', 'cancelled') then count else 0 end
          - case when was in ('done', 'dead', 'cancelled') then count else 0 end as count
        from (
          select queue, was, becomes, count from millpond.totals where segment = p_segment
          union all
          select queue, was, becomes, count from millpond.moves where segment = p_segment
        ) as each
      ) as changes group by queue having sum(count) > 0
    ) as holding join millpond.queues as q on q.id = holding.queue
  loop
    v_queues := v_queues + 1;
    v_keep := case when p_segment < 0 then v_queue.keep_dead else v_queue.keep_done end;
    if p_segment >= 0 then
      -- Where that costs little, or the segment will be emptied only much later for the sake of another queue.
      continue when not v_small and v_keep * 2 >= p_keep;
      v_ids := array(
        select id from millpond.done
        where segment = p_segment and queue = v_queue.id and finished_at <= p_now - v_keep
        order by finished_at limit p_limit - v_expired);
      if millpond.has_children(v_queue.id) then
        v_live := millpond.with_live_children(v_ids);
        v_expired := v_expired + millpond.keep_for_children(p_segment, v_live);
        v_ids := array(select unnest(v_ids) except select unnest(v_live));
      end if;
      delete from millpond.done where segment = p_segment and id = any (v_ids);
      get diagnostics v_gone = row_count;
      if v_gone > 0 then
        insert into millpond.moves (queue, segment, was, becomes, cause, count)
        values (v_queue.id, p_segment, 'done', 'gone', 'expire', v_gone);
        v_expired := v_expired + v_gone;
      end if;
      select least(v_next, finished_at + v_keep) into v_first from millpond.done
      where segment = p_segment and queue = v_queue.id order by finished_at limit 1;
      v_next := coalesce(v_first, v_next);
    else
      foreach v_state in array array['dead', 'cancelled'] loop
        with gone as (
          delete from millpond.retired where ctid = any (array(
            select ctid from millpond.retired
            where queue = v_queue.id and state = v_state and finished_at <= p_now - v_keep
            order by finished_at, place limit p_limit - v_expired
            for update skip locked))
          returning state
        )
        select count(*) into v_gone from gone;
        if v_gone > 0 then
          insert into millpond.moves (queue, segment, was, becomes, cause, count)
          values (v_queue.id, -1, v_state, 'gone', 'expire', v_gone);
          v_expired := v_expired + v_gone;
        end if;
        select least(v_next, finished_at + v_keep) into v_first from millpond.retired
        where queue = v_queue.id and state = v_state order by finished_at, place limit 1;
        v_next := coalesce(v_first, v_next);
      end loop;
    end if;
    exit when v_expired >= p_limit;
  end loop;
  -- The more queues hold something, the rarer are the looks.
  update millpond.segments set look_at = case when v_expired < p_limit then greatest(v_next, p_now + v_queues / 64 * 64) end
    where segment = p_segment;
  return v_expired;
end $$;

-- What one process at a time does: removes what was kept long enough, adds up the counts. `p_whole`: also of moves that committed late.
create or replace function millpond.tidy(p_limit integer, p_now bigint, p_whole boolean) returns bigint
language plpgsql as $$
declare
  v_from    bigint;
  v_keep    bigint;
  v_segment smallint;
  v_expired bigint;
begin
  if not pg_try_advisory_xact_lock(hashtext('millpond tidy'), 0) then return 0; end if;
  select case when p_whole then 0 else last_value end into v_from from millpond.swept_moves;
  if exists (select from millpond.moves where id >= v_from order by id offset 64) then
    perform setval('millpond.swept_moves', millpond.add_up(null, v_from));
  end if;
  select max(keep_done) into v_keep from millpond.queues;
  v_expired := millpond.rotate_segments(p_now, coalesce(v_keep, 0));
  for v_segment in
    select segment from millpond.segments
    where (used or segment < 0) and segment < 8 and (look_at is null or look_at <= p_now) order by segment
  loop
    exit when v_expired >= p_limit;
    v_expired := v_expired + millpond.expire(v_segment, p_limit, p_now, v_keep);
  end loop;
  -- Minute -1 keeps the sum of all that are forgotten.
  with forgotten as (
    delete from millpond.histograms where minute >= 0 and minute <= p_now / 60000 - 60
    returning queue, priority, metric, bucket, count
  )
  insert into millpond.histograms as known (minute, queue, priority, metric, bucket, count)
  select -1, queue, priority, metric, bucket, sum(count) from forgotten group by queue, priority, metric, bucket
  on conflict (minute, queue, priority, metric, bucket) do update set count = known.count + excluded.count;
  delete from millpond.repeats where at <= p_now - 3600000;
  perform millpond.forget_workers(p_now);
  perform millpond.prune_links(p_now);
  -- Of workers that wait at queues that never came, or were removed. Who is still there is noted again with the next claim.
  if p_whole then delete from millpond.sleepers where not exists (select from millpond.queues where name = sleepers.queue); end if;
  return v_expired;
end $$;

-- Jobs that are due, at most so many, from the given one on. By turns: many of one queue must not keep the others waiting.
create or replace function millpond.due(p_limit integer, p_now bigint, p_from bigint, p_place bigint) returns tid[]
language plpgsql as $$
declare
  v_ctids tid[];
  v_turns tid[];
begin
  v_ctids := array(
    select ctid from millpond.waiting where state = 'scheduled' and due_at <= p_now and (due_at, place) >= (p_from, p_place)
    order by due_at, place limit p_limit
    for update skip locked);
  if cardinality(v_ctids) < p_limit then return v_ctids; end if;
  -- A few of each queue, then the rest.
  v_turns := array(
    select due.ctid from (select id from millpond.queues order by random()) as q cross join lateral (
      select ctid from millpond.waiting
      where queue = q.id and state = 'scheduled' and due_at <= p_now and (due_at, place) >= (p_from, p_place)
      order by due_at, place limit p_limit / 8
      for update skip locked
    ) as due limit p_limit);
  return v_turns || (array(select unnest(v_ctids) except select unnest(v_turns)))[1:p_limit - cardinality(v_turns)];
end $$;

create or replace function millpond.sweep("limit" integer, now bigint default null) returns json
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_began    constant timestamptz := clock_timestamp();
  v_patience constant text := current_setting('lock_timeout');
  v_now      bigint;
  v_whole    boolean;
  v_moves    boolean;
  v_held     record;
  v_due      bigint;
  v_place    bigint;
  v_lease    bigint;
  v_idle     bigint;
  v_ctids    tid[] := '{}';
  v_lost     json[] := '{}';
  v_work     text[] := '{}';
  v_promoted bigint := 0;
  v_expired  bigint;
  v_groups   bigint;
  v_count    bigint;
  v_bells    text[];
  settled    record;
  v_queue    record;
  v_line     integer;
  v_state    text;
  v_next     bigint;
  job        running%rowtype;
begin
  perform read_committed();
  lock table waiting, running in row exclusive mode;
  perform set_config('synchronous_commit', 'off', true);
  -- One sweep at a time moves the marks. The others hold the time, as what they end may let jobs go.
  v_moves := pg_try_advisory_xact_lock(hashtext('millpond sweep'), 0);
  v_now := case when v_moves then time_of(sweep.now) else hold_time('due', sweep.now) end;
  -- A mark in the future: the clock went back.
  v_whole := v_moves and (
    (select last_value from swept_whole) - v_now not between 1 and 600000 or (select last_value from swept_due) > v_now);
  -- In ten minutes, should this one be cut off.
  if v_whole then perform setval('swept_whole', v_now + 600000); end if;
  if v_moves then select * into v_held from held_times(v_now); end if;
  -- The first of each, as far as it is committed: the marks move up to them, also if this sweep is undone.
  select case when v_whole then 0 else last_value end into v_due from swept_due;
  select case when v_whole then 0 else last_value end into v_place from swept_place;
  select due_at, place into v_due, v_place from waiting where state = 'scheduled' and (due_at, place) >= (v_due, v_place)
  order by due_at, place limit 1;
  select case when v_whole then 0 else last_value end into v_lease from swept_leases;
  select lease_until into v_lease from running where lease_until <= v_now and lease_until >= v_lease order by lease_until limit 1;
  select case when v_whole then 0 else last_value end into v_idle from swept_idle;
  select forget_at into v_idle from groups where forget_at <= v_now and forget_at >= v_idle order by forget_at limit 1;
  if v_moves then
    -- The place first, as it is read last: with the old time it is no later than the new mark. A follower may become due at the time that
    -- is held, or now, and have an earlier place than the first job.
    perform setval('swept_place', case when v_due < v_held.due then v_place else 0 end);
    perform setval('swept_due', least(v_due, v_held.due)), setval('swept_leases', least(v_lease, v_held.leases)),
      setval('swept_idle', least(v_idle, v_held.leases));
  end if;
  v_next := v_due;
  if v_due <= v_now then v_ctids := due(sweep."limit", v_now, v_due, v_place); end if;
  for v_queue in
    select q.id, q.name from queues as q where q.id in (select queue from waiting where ctid = any (v_ctids)) order by q.id
  loop
    v_line := line_back(v_queue.id);
    with promoted as (
      update waiting set state = 'waiting', line = v_line where ctid = any (v_ctids) and queue = v_queue.id returning "group"
    ), arrived as (
      insert into arrivals (queue, groups) select v_queue.id, array_agg(distinct coalesce("group", '')) from promoted having v_line = -1
        and count(*) > 0
    )
    select count(*) into v_count from promoted;
    insert into moves (queue, segment, was, becomes, cause, count) values (v_queue.id, -1, 'scheduled', 'waiting', 'promote', v_count);
    v_promoted := v_promoted + v_count;
    v_work := v_work || v_queue.name;
  end loop;
  -- Claimed by a clock that has been set back since: they count as claimed now. A lease that ends later than the marks stays so.
  if v_whole then
    update running set lease_until = lease_until - (started_at - v_now), started_at = v_now
    where ctid = any (array(select ctid from running where started_at > v_now + 1000 for update skip locked));
  end if;
  for job in
    select * from running where lease_until <= v_now and lease_until >= v_lease
    order by lease_until, queue, place limit sweep."limit"
    for update skip locked
  loop
    select name, keep_dead into v_queue from queues where id = job.queue;
    if job.attempt < job.attempts then
      delete from running where id = job.id;
      v_state := 'waiting';
      job.due_at := v_now;
      perform put_back(job, 'waiting', 'lose');
      v_work := v_work || v_queue.name;
    else
      v_state := 'dead';
      job.error := json_build_object('code', 'LeaseLost', 'name', 'MillpondError', 'message', 'Worker ' || job.worker || ' fell silent.');
      begin
        if job.key is not null then perform set_config('lock_timeout', '20ms', true); end if;
        delete from running where id = job.id;
        perform retire(job, 'dead', 'lose', v_now, v_queue.keep_dead);
      exception when lock_not_available or deadlock_detected then
        -- Another transaction holds its key, or the job that follows it.
        continue;
      end;
      perform set_config('lock_timeout', v_patience, true);
      perform ring('finished', v_queue.name);
      if job.line < 0 then v_work := v_work || v_queue.name; end if;
      if has_children(job.queue) then insert into ended (parent, state) values (job.id, 'dead'); end if;
    end if;
    v_lost := v_lost || json_build_object('id', job.id, 'queue', v_queue.name, 'attempt', job.attempt, 'state', v_state);
  end loop;
  -- Before anything is removed that parents may be found by.
  select * into settled from settle_rest(v_now);
  v_bells := settled.bells;
  v_groups := forget_groups(sweep."limit", v_now, v_idle);
  v_groups := v_groups + forget_keys(sweep."limit" - v_groups, v_now);
  v_groups := greatest(v_groups, prune_journals(sweep."limit", v_now));
  v_expired := tidy(sweep."limit", v_now, v_whole);
  foreach v_state in array array(select distinct unnest(v_work)) loop
    perform ring('work', v_state);
  end loop;
  perform ring_all(v_bells);
  if v_promoted > 0 then
    select due_at into v_next from waiting where state = 'scheduled' and (due_at, place) >= (v_due, v_place) order by due_at, place limit 1;
  end if;
  -- While an old transaction keeps vacuum away, it steps over all that has died: that may take a hundredth of the time.
  if v_whole then
    perform setval('swept_whole', v_now + least(600000, greatest(10000,
      (100000 * extract(epoch from clock_timestamp() - v_began))::bigint)));
  end if;
  return json_build_object('now', v_now, 'lost', v_lost, 'promoted', v_promoted,
    'work', v_work || array(select substr(bell, 6) from unnest(v_bells) as bell where bell like 'work:%'), 'expired', v_expired,
    'more', greatest(v_promoted, cardinality(v_lost), v_expired, v_groups) >= sweep."limit"
      or settled.more,
    'nextDue', least(case when v_next < 281474976710655 then greatest(v_next - v_now, 0) end, next_schedule(v_now) - v_now),
    'schedules', due_schedules(v_now),
    'queues', (select count(*) from queues));
end $$;
