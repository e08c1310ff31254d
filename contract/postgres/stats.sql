-- stats: what people look at.
-- In:  queue, null: all; minutes: how far back the histograms go, 0: none.
-- Out: JSON per queue, with the names and shapes of contract/operations.md.
-- Invariant: nothing here scans the jobs. The oldest is taken from the first 64 of each line and priority, and only where a job waits.

create or replace function millpond.oldest_due(p_queue integer) returns bigint
language plpgsql stable
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
begin
  return (
    select min(head.due_at) from millpond.lines cross join generate_series(1, 10) as level(nth) cross join lateral (
      select due_at from millpond.waiting
      where queue = p_queue and line = lines.line and state = 'waiting' and priority = (10 - level.nth)::smallint
        and place >= lines.places[level.nth]
      order by place limit 64
    ) as head where lines.queue = p_queue);
end $$;

-- How many groups have waiting jobs and wait for a slot of their own, or for their rate or a pause. Of up to 10,000 groups counts what the
-- last claim has noted. Up to 1,000 of those to which something happened since then are looked at anew; so are 1,000 of all where
-- the settings have changed, or the clock went back.
create or replace function millpond.stopped_groups(p_limits millpond.limits, p_now bigint, out at_limit bigint, out held bigint)
language plpgsql stable as $$
declare
  v_most  constant integer := 1000;
  v_names text[] := array(
    select distinct name from (
      select unnest(groups) as name from (
        select groups from millpond.arrivals where queue = p_limits.queue order by id limit v_most) as first limit 10 * v_most
    ) as arrived limit v_most);
begin
  if exists (
    select from millpond.turns where queue = p_limits.queue and (version <> p_limits.version or p_now < claimed_at - 1000)) then
    v_names := array(
      select unnest(v_names)
      union
      (select name from millpond.groups where queue = p_limits.queue and forget_at is null limit v_most));
  end if;
  -- A group that only runs jobs has no ticket either.
  select count(*) filter (where not is_held and ticket is null and forget_at is null and exists (
      select from millpond.waiting
      where queue = p_limits.queue and coalesce("group", '') = noted.name and state = 'waiting' and line = -1)),
    count(*) filter (where is_held) into at_limit, held
  from (select name, ticket, forget_at, held_until, coalesce(held_until > p_now, false) as is_held from millpond.groups
    where queue = p_limits.queue order by name limit 10000) as noted
  where name not in (select unnest(v_names)) and (held_until is null or is_held);
  select at_limit + count(*) filter (where running >= most), held + count(*) filter (where wait > 0 and (most is null or running < most))
  into at_limit, held
  from millpond.look_at_groups(p_limits, v_names, p_now) as looked where first is not null;
end $$;

-- The limits of a queue (JSON, or null: it has none and is not grouped), and what holds its jobs back: see operations.md, stats. All
-- null for no queue, in which case nothing is looked up.
create or replace function millpond.limits_now(
  p_queue integer, p_now bigint, out settings json, out next_start bigint, out at_limit bigint, out held bigint
) language plpgsql stable strict
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off set enable_nestloop = on
set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_limits  millpond.limits;
  v_running bigint := 0;
begin
  select * into v_limits from millpond.limits where queue = p_queue;
  at_limit := 0;
  held := 0;
  if v_limits.running is not null then
    select count(*) into v_running from (select from millpond.running where queue = p_queue and line < 0 limit v_limits.running) as slot;
  end if;
  if v_limits.grouped then
    select stopped.at_limit, stopped.held into at_limit, held from millpond.stopped_groups(v_limits, p_now) as stopped;
  end if;
  if v_running < v_limits.running or v_limits.running is null then
    select greatest(0, millpond.pause_end(q.paused_until, q.pause_length, p_now) - p_now, millpond.rate_wait(v_limits.rate,
      millpond.after_releases(t.full_at, t.full_cost, back.jobs, false), t.full_cost, 1, p_now)) into next_start
    from millpond.queues as q left join millpond.turns as t on t.queue = q.id
    cross join (
      select array_agg(job::millpond.released order by a.id) as jobs
      from millpond.arrivals as a cross join lateral unnest(a.released) as job where a.queue = p_queue and a.released is not null
    ) as back
    where q.id = p_queue;
  end if;
  if v_limits.running is not null or (v_limits.rate).count is not null or v_limits.grouped then
    settings := millpond.limits_json(v_limits);
  end if;
end $$;

create or replace function millpond.stats(queue text default null, minutes integer default 0, now bigint default null) returns setof json
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_nestloop = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now   bigint  := time_of(stats.now);
  v_least integer := 0;
  v_most  integer := 2147483647;
begin
  if stats.queue is not null then
    select id, id into v_least, v_most from queues where name = stats.queue;
    if not found then return; end if;
  end if;
  return query
    with moved as (
      select queue, was, becomes, cause, count from totals where queue between v_least and v_most
      union all
      select queue, was, becomes, cause, count from moves where queue between v_least and v_most
    ), counted as (
      select queue, json_object_agg(state, count) as counts, sum(count) filter (where state = 'waiting') as waiting
      from (
        select queue, state, sum(count) as count from (
          select queue, becomes as state, count from moved
          union all
          select queue, was, -count from moved
          union all
          -- So that each has one.
          select q.id, known.state, 0 from queues as q cross join unnest(states()) as known(state) where q.id between v_least and v_most
        ) as each where state not in ('new', 'gone') group by queue, state
      ) as summed group by queue
    ), totalled as (
      select queue, coalesce(sum(count) filter (where cause = 'push'), 0) as pushed,
        coalesce(sum(count) filter (where cause = 'complete'), 0) as done,
        coalesce(sum(count) filter (where cause = 'fail'), 0) as failed,
        coalesce(sum(count) filter (where becomes = 'dead' and cause <> 'restore'), 0) as dead,
        coalesce(sum(count) filter (where cause = 'cancel'), 0) as cancelled, coalesce(sum(count) filter (where cause = 'lose'), 0) as lost,
        coalesce(sum(count) filter (where cause = 'release'), 0) as released
      from moved group by queue
    ), measured as (
      select queue, json_agg(json_build_object('queue', name, 'priority', priority, 'metric', metric, 'buckets', buckets)) as histograms
      from (
        select queue, name, priority, metric, json_object_agg(bucket, count) as buckets
        from (
          select queue, priority, metric, bucket, sum(count) as count from histograms
          where stats.minutes > 0 and minute > v_now / 60000 - stats.minutes and queue between v_least and v_most
          group by queue, priority, metric, bucket
        ) as summed join queues on queues.id = queue group by queue, name, priority, metric
      ) as merged group by queue
    )
    select json_build_object(
      'queue', q.name, 'paused', q.paused, 'capacity', q.capacity,
      'overrides', coalesce(q.operator, '{}'), 'lastClaim', case when q.heard_at is not null then greatest(0, v_now - q.heard_at) end,
      'counts', counts, 'totals', json_build_object('pushed', coalesce(pushed, 0), 'done', coalesce(done, 0), 'failed', coalesce(failed, 0),
        'dead', coalesce(dead, 0), 'cancelled', coalesce(cancelled, 0), 'lost', coalesce(lost, 0), 'released', coalesce(released, 0)),
      'oldestWaiting', case when waiting > 0 then greatest(v_now - oldest_due(q.id), 0) end,
      'limits', limited.settings,
      'nextStart', case when q.limits is null then greatest(pause_end(q.paused_until, q.pause_length, v_now) - v_now, 0)
        else limited.next_start end,
      'groupsAtLimit', coalesce(limited.at_limit, 0), 'groupsHeld', coalesce(limited.held, 0),
      'histograms', coalesce(histograms, '[]'))
    from queues as q left join counted on counted.queue = q.id left join totalled on totalled.queue = q.id
      left join measured on measured.queue = q.id
      cross join lateral limits_now(case when q.limits is not null then q.id end, v_now) as limited
    where q.id between v_least and v_most;
end $$;
