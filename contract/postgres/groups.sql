-- groups: the groups of a grouped queue, as people look at them.
-- In:  queue, limit; after: the last name of the page before, or null; group: only this one, or null.
-- Out: JSON per group that has waiting or running jobs or limits of its own, by the bytes of their names: group limits waiting running nextStart.

create or replace function millpond.groups_of(p_limits millpond.limits, p_after text, p_only text, p_limit integer, p_now bigint) returns table (
  name text, own json, waiting bigint, running bigint, next_start bigint
) language plpgsql stable as $$
#variable_conflict use_column
begin
  return query
  select known.name, case when g.own then json_build_object('running', g.running, 'rate', g.rate, 'weight', g.weight) end,
    waits.waiting, runs.running,
    case when first.cost is null or runs.running >= most.running then null
      else greatest(0, g.paused_until - p_now, millpond.rate_wait(most.rate, coalesce(g.full_at, 0), first.cost, p_now)) end
  from (
    select name from (
      select name from millpond.groups where queue = p_limits.queue
      union
      select unnest(groups) from millpond.arrivals where queue = p_limits.queue
    ) as each where (p_after is null or name > p_after) and (p_only is null or name = p_only) order by name offset 0
  ) as known
  left join lateral (select * from millpond.groups where queue = p_limits.queue and groups.name = known.name offset 0) as g on true
  left join lateral (
    select cost from millpond.waiting where queue = p_limits.queue and coalesce("group", '') = known.name and not scheduled and line = -1
    order by priority desc, seq limit 1
  ) as first on true
  cross join lateral (
    select count(*) as waiting from (
      select from millpond.waiting where queue = p_limits.queue and coalesce("group", '') = known.name and not scheduled and line = -1 limit 10000
    ) as job
  ) as waits
  cross join lateral (
    select count(*) as running from millpond.running where queue = p_limits.queue and coalesce("group", '') = known.name and line = -1
  ) as runs
  cross join lateral (
    select case when known.name = '' then g.running else coalesce(g.running, p_limits.group_running) end as running,
      case when (g.rate).count is not null then g.rate when known.name <> '' then p_limits.group_rate end as rate
  ) as most
  where waits.waiting > 0 or runs.running > 0 or g.own
  order by known.name limit p_limit;
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
begin
  select each.* into v_limits from limits as each join queues as q on q.id = each.queue where q.name = groups.queue;
  if v_limits.grouped is not true then return; end if;
  return query
    select json_build_object('group', name, 'limits', own, 'waiting', waiting, 'running', running, 'nextStart', next_start)
    from groups_of(v_limits, groups.after, groups."group", groups."limit", time_of(groups.now));
end $$;
