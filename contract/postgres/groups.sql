-- groups: the groups of a grouped queue, as people look at them.
-- In:  queue, limit; after: the last name of the page before, or null; group: only this one, or null.
-- Out: JSON per group that has waiting or running jobs or limits of its own, by the bytes of their names: group limits waiting running
--      nextStart.

-- What these groups have, and what they wait for: own limits as JSON; most: their limit of running jobs; first: the cost of the first
-- job that waits; wait: ms until their rate and pause allow it. Also of those that no claim has looked at yet, and with the claims that
-- were given back since.
create or replace function millpond.look_at_groups(p_limits millpond.limits, p_names text[], p_now bigint) returns table (
  name text, own json, most integer, running bigint, first integer, wait bigint
) language plpgsql stable as $$
#variable_conflict use_column
begin
  return query
  select given.name, case when own.name is not null then json_build_object('running', own.running, 'rate', own.rate,
    'weight', own.weight) end,
    lim.running, runs.running, head.cost,
    greatest(0, back.paused_until - p_now, millpond.pause_end(known.paused_until, known.pause_length, p_now) - p_now,
      millpond.rate_wait(lim.rate, millpond.after_releases(coalesce(known.full_at, 0), coalesce(known.full_cost, 1), back.jobs, true),
        coalesce(known.full_cost, 1), head.cost, p_now))
  from unnest(p_names) as given(name)
  left join lateral (select * from millpond.groups where queue = p_limits.queue and groups.name = given.name offset 0) as known on true
  left join lateral (select * from millpond.group_limits where queue = p_limits.queue
    and group_limits.name = given.name offset 0) as own on true
  left join lateral (
    select array_agg(job::millpond.released order by a.id) as jobs,
      max(least(job.at, p_now) + job.pause) filter (where job.pause > 0 and job."group" is not null) as paused_until
    from millpond.arrivals as a cross join lateral unnest(a.released) as job
    where a.queue = p_limits.queue and a.released is not null and coalesce(job."group", '') = given.name
  ) as back on true
  left join lateral (
    select cost from millpond.waiting where queue = p_limits.queue and coalesce("group", '') = given.name and state = 'waiting'
      and line = -1
    order by priority desc, place limit 1
  ) as head on true
  cross join lateral (
    select count(*) as running from millpond.running where queue = p_limits.queue and coalesce("group", '') = given.name and line = -1
  ) as runs
  cross join lateral (
    select case when given.name = '' then own.running else coalesce(own.running, p_limits.group_running) end as running,
      millpond.rate_of(p_limits, given.name, own.rate) as rate
  ) as lim;
end $$;

create or replace function millpond.groups(
  queue text, "limit" integer, after text default null, "group" text default null, now bigint default null
) returns setof json
language plpgsql stable security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_limits limits;
  v_names  text[] := '{}';
  v_name   text   := groups.after;
  v_from   text;
begin
  select each.* into v_limits from limits as each join queues as q on q.id = each.queue where q.name = groups.queue;
  if v_limits.grouped is not true then return; end if;
  if groups."group" is not null then
    v_names := array(select groups."group" where groups.after is null or groups."group" > groups.after collate "C");
  else
    -- From name to name through the indexes, each at least the one before and a character: so no other group is looked at, however many
    -- there are, and none is left out that has something.
    while cardinality(v_names) < groups."limit" loop
      v_from := coalesce(v_name || chr(1), '');
      v_name := least(
        (select coalesce("group", '') from waiting where waiting.queue = v_limits.queue and state = 'waiting' and line = -1
          and coalesce("group", '') >= v_from order by coalesce("group", '') limit 1),
        (select coalesce("group", '') from running where running.queue = v_limits.queue and line < 0 and line = -1
          and coalesce("group", '') >= v_from order by coalesce("group", '') limit 1),
        (select name from group_limits as own where own.queue = v_limits.queue and name >= v_from order by name limit 1));
      exit when v_name is null;
      v_names := v_names || v_name;
    end loop;
  end if;
  return query
    select json_build_object('group', name, 'limits', own, 'waiting', waits.waiting, 'running', running,
      'nextStart', case when first is not null and (most is null or running < most) then wait end)
    from look_at_groups(v_limits, v_names, time_of(groups.now)) as looked
    cross join lateral (
      select count(*) as waiting from (
        select from waiting where waiting.queue = v_limits.queue and coalesce("group", '') = looked.name and state = 'waiting'
          and line = -1 limit 10000
      ) as job
    ) as waits
    where waits.waiting > 0 or running > 0 or own is not null
    order by name collate "C" limit groups."limit";
end $$;
