-- push of jobs that wait for others: contract/graphs.md.
-- In:  as push_jobs; whole: all jobs are stored, or none.
-- Out: as push_jobs, and `orphan`, the id, a space, the parent that is not known or has ended; `withheld`, the id: not stored since
--      another job could not be.
-- Invariant: parents are not changed, nor locked, but where done jobs are kept for less than a minute: see graphs.sql. A claim passes over
--      those until the push is committed.

-- Locks the rows of those of these jobs that may be gone when their children are committed.
create or replace function millpond.hold_parents(p_parents uuid[]) returns void
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_held uuid[] := '{}';
  v_soon uuid[];
  v_id   uuid;
begin
  loop
    -- A job may be on its way from one table to the next.
    v_soon := array(
      select given.id from unnest(p_parents) as given(id) cross join lateral (
        select queue from millpond.waiting where waiting.id = given.id
        union all
        select queue from millpond.running where running.id = given.id
        offset 0
      ) as job cross join lateral (select keep_done from millpond.queues where queues.id = job.queue offset 0) as q
      where q.keep_done < 60000);
    exit when v_soon <@ v_held;
    v_held := '{}';
    -- In the order of ids, whatever table they are in, as all who lock several.
    foreach v_id in array array(select distinct id from unnest(v_soon) as given(id) order by id) loop
      perform from millpond.waiting where id = v_id for key share;
      if not found then perform from millpond.running where id = v_id for key share; end if;
      if found then v_held := v_held || v_id; end if;
    end loop;
  end loop;
  -- A claim passes over what is locked here, and may fall asleep.
  perform millpond.ring('work', name, false) from (
    select distinct name from unnest(v_held) as given(id) cross join lateral (
      select queue, state from millpond.waiting where waiting.id = given.id offset 0
    ) as job cross join lateral (select name from millpond.queues where queues.id = job.queue offset 0) as q
    where job.state = 'waiting' order by name offset 0
  ) as held;
end $$;

-- What the parents of a new job are. orphan: not known; or, of `partOf`, ended. open, closed: the others. failed, became: one that makes
-- the job cancelled at once. children: blocked jobs that are to wait for the job, too; their rows are locked. p_restored: parents that
-- are not known are awaited. p_given, p_stands: former jobs of the call that were answered with another one, and those; the latter stand
-- for them.
create or replace function millpond.look_at_parents(
  p_after uuid[], p_on_dead text, p_part_of uuid, p_given uuid[] default null, p_stands uuid[] default null,
  p_restored boolean default false,
  out orphan uuid, out open uuid[], out closed uuid[], out failed uuid, out became text, out children uuid[], out is_blocked boolean
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_after  constant uuid[] := array(
    select coalesce(p_stands[array_position(p_given, id)], id) from unnest(p_after) with ordinality as one(id, nth) order by nth);
  v_part_of constant uuid   := coalesce(p_stands[array_position(p_given, p_part_of)], p_part_of);
begin
  open := '{}';
  closed := '{}';
  children := '{}';
  if cardinality(v_after) > 0 then
    perform millpond.hold_parents(v_after);
    -- In a statement of its own: it sees what was committed before the rows were locked.
    with seen as (
      select given.id, given.nth, job.state from (
        select id, min(nth) as nth from unnest(v_after) with ordinality as each(id, nth) group by id
      ) as given left join lateral (select state from millpond.all_jobs as known where known.id = given.id offset 0) as job on true
    )
    select (array_agg(id order by nth) filter (where state is null and not p_restored))[1],
      coalesce(array_agg(id) filter (where state is null or state not in ('done', 'dead', 'cancelled')), '{}'),
      coalesce(array_agg(id) filter (where state in ('done', 'dead', 'cancelled')), '{}'),
      (array_agg(id order by nth) filter (where state in ('dead', 'cancelled') and p_on_dead is distinct from 'run'))[1],
      (array_agg(state order by nth) filter (where state in ('dead', 'cancelled') and p_on_dead is distinct from 'run'))[1]
    into orphan, open, closed, failed, became from seen;
    if orphan is not null then
      -- As it was given.
      orphan := p_after[array_position(v_after, orphan)];
      return;
    end if;
  end if;
  if p_part_of is not null then
    children := millpond.children_of(array[v_part_of]);
    -- Seen after the locks: who ends that job settles its children first.
    if not exists (select from millpond.all_jobs where id = v_part_of and state in ('blocked', 'scheduled', 'waiting', 'running')) then
      orphan := p_part_of;
      return;
    end if;
    children := array(
      select id from millpond.children as child where id = any (look_at_parents.children) and waits_for > 0 and v_part_of = any (after));
  end if;
  is_blocked := cardinality(open) > 0 or failed is not null;
end $$;

-- The jobs that wait for these. Their rows are locked, in the order of ids.
create or replace function millpond.children_of(p_parents uuid[]) returns uuid[]
language sql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
  select array(
    select id from millpond.waiting where state = 'blocked' and id = any (array(
      select unnest(coalesce(remaining, children)) from millpond.links where parent = any (p_parents) and is_open))
    order by id for no key update)
$$;

-- A job was just stored: blocked, if it has an open link or is to be cancelled.
create or replace function millpond.link(
  p_id uuid, p_open uuid[], p_closed uuid[], p_on_dead text, p_children uuid[], p_failed uuid, p_became text, p_now bigint
) returns void
language plpgsql as $$
begin
  insert into millpond.links (parent, children, is_open)
  select id, array[p_id], p_failed is null from unnest(p_open) as given(id)
  union all select id, array[p_id], false from unnest(p_closed) as given(id);
  if cardinality(p_open || p_closed) > 0 then
    insert into millpond.children (id, queue, place, is_blocked, waits_for, on_dead, after)
    select id, queue, place, state = 'blocked', cardinality(p_open), coalesce(p_on_dead, 'cancel'), p_open || p_closed
    from millpond.waiting where id = p_id
    -- Of a job with this id that is gone.
    on conflict (id) do update set queue = excluded.queue, place = excluded.place, is_blocked = excluded.is_blocked,
      waits_for = excluded.waits_for, on_dead = excluded.on_dead, after = excluded.after;
  end if;
  if cardinality(p_children) > 0 then
    -- A restored one may wait for this job already.
    p_children := array(select id from millpond.children where id = any (p_children) and p_id <> all (after));
    insert into millpond.links (parent, children, is_open) values (p_id, p_children, true);
    update millpond.children set waits_for = waits_for + 1, after = after || p_id where id = any (p_children);
  end if;
  if p_failed is not null then perform millpond.tell(millpond.cancel_blocked(p_id, p_failed, p_became, p_now)); end if;
end $$;

-- Jobs were just stored, in step: their ids, queues, places, onDead, and numbers of open links. p_children, p_parents: the links, from the
-- number of a job to its parent. p_done, p_live: those parents that are not of this push.
create or replace function millpond.link_set(
  p_ids uuid[], p_queues integer[], p_places bigint[], p_on_dead text[], p_open integer[], p_children integer[], p_parents uuid[],
  p_done uuid[], p_live uuid[]
) returns void
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  -- So that a step of `settle` takes whole rows.
  v_most constant integer := case
    when exists (select from unnest(p_parents) as link(parent) group by parent having count(*) > millpond.graph_step())
    then millpond.graph_step() else cardinality(p_ids) + 1 end;
begin
  insert into millpond.links (parent, children, is_open)
  select parent, array_agg(p_ids[child]), parent not in (select unnest(p_done))
  from unnest(p_parents, p_children) as link(parent, child) group by parent, child / v_most;
  insert into millpond.children (id, queue, place, is_blocked, waits_for, on_dead, after)
  select p_ids[child], p_queues[child], p_places[child], p_open[child] > 0, p_open[child], p_on_dead[child], array_agg(parent)
  from unnest(p_parents, p_children) as link(parent, child) group by child
  -- Of a job with this id that is gone.
  on conflict (id) do update set queue = excluded.queue, place = excluded.place, is_blocked = excluded.is_blocked,
    waits_for = excluded.waits_for, on_dead = excluded.on_dead, after = excluded.after;
  perform millpond.expect_children(array(
    -- `case`: so that the parents are hashed.
    select distinct queue from unnest(p_ids, p_queues) as job(id, queue) where case when id in (select unnest(p_parents)) then true end));
  if cardinality(p_live) > 0 then
    perform millpond.expect_children(array(
      select queue from millpond.waiting where id = any (p_live) union select queue from millpond.running where id = any (p_live)));
    insert into millpond.ended (parent, state) select id, 'unsure' from unnest(p_live) as given(id);
  end if;
end $$;

-- Endings of these jobs, to which links were made, look for children. Those that are not of this push are noted, as others may be ending
-- them. p_restored: those that are not known are awaited.
create or replace function millpond.note_parents(p_parents uuid[], p_outcomes text[], p_restored boolean default false) returns void
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
begin
  perform millpond.expect_children(array(
    select queue from millpond.waiting where id = any (p_parents)
    union select queue from millpond.running where id = any (p_parents)
    union select 0 from unnest(p_parents) as given(id) where p_restored and not millpond.is_known(id)));
  insert into millpond.ended (parent, state)
  select distinct id, case when p_restored and not millpond.is_known(id) then 'unknown' else 'unsure' end
  from unnest(p_parents) as given(id) where 'pushed ' || id <> all (p_outcomes);
end $$;

-- Jobs are about to come back: they wait for those of their parents that live, or come back with them. Pairs of such a job and a parent.
-- Their links from before are closed, and those to these parents are made anew.
create or replace function millpond.open_again(p_ids uuid[], out child uuid[], out parent uuid[])
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_parents uuid[];
begin
  child := '{}';
  parent := '{}';
  v_parents := array(
    select distinct unnest(job.after[:]) from millpond.children as job join millpond.retired on retired.id = job.id
    where job.id = any (p_ids) and retired.place = job.place order by 1);
  if cardinality(v_parents) = 0 then return; end if;
  perform millpond.hold_parents(v_parents);
  perform from millpond.links where links.parent = any (v_parents) and is_open order by links.parent for update;
  -- In a statement of its own: it sees what was committed before the rows were locked.
  select coalesce(array_agg(job.id), '{}'), coalesce(array_agg(one.id), '{}') into child, parent
  from millpond.children as job join millpond.retired on retired.id = job.id and retired.place = job.place
  cross join lateral unnest(job.after[:]) as one(id)
  where job.id = any (p_ids)
    and exists (select from millpond.links where links.parent = one.id and job.id = any (links.children))
    and (one.id = any (p_ids) or exists (select from millpond.waiting where waiting.id = one.id)
      or exists (select from millpond.running where running.id = one.id));
  update millpond.links set is_open = cardinality(closed.rest) > 0, remaining = closed.rest from (
    select ctid as row_at, array(select unnest(coalesce(remaining, children)) except select unnest(p_ids)) as rest
    from millpond.links where links.parent = any (v_parents) and is_open and coalesce(remaining, children) && p_ids
  ) as closed where links.ctid = closed.row_at;
  insert into millpond.links (parent, children, is_open)
  select parents.id, array_agg(children.id), true
  from unnest(open_again.parent, open_again.child) as pair(parent, child)
  cross join lateral (select pair.parent as id) as parents cross join lateral (select pair.child as id) as children group by parents.id;
  update millpond.children as job set is_blocked = true, waits_for = own.count from (
    select pair.child as id, count(*)::integer as count from unnest(open_again.child) as pair(child) group by pair.child
  ) as own where job.id = own.id;
end $$;

create or replace function millpond.push_graph(
  jobs json, own boolean default true, now bigint default null, again boolean default false, listener text default null,
  whole boolean default false
) returns text[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_jobs     constant json := push_graph.jobs;
  v_outcomes text[];
  v_parents  uuid[];
  v_wholes  uuid[];
begin
  select array_agg(distinct parent), array_agg(distinct "partOf") filter (where "partOf" is not null) into v_parents, v_wholes
  from json_to_recordset(v_jobs) as given(after uuid[], "partOf" uuid) left join lateral unnest(after) as one(parent) on true;
  -- The lost call has come in.
  if push_graph.again and not exists (
    select from json_to_recordset(v_jobs) as given(id uuid) where not is_known(given.id)) then
    return array(
      select 'pushed ' || id from rows from (json_to_recordset(v_jobs) as (id uuid)) with ordinality as given(id, nth) order by nth);
  end if;
  -- All at once, in the order of ids: so no two pushes wait for each other.
  perform hold_parents(v_parents);
  if v_wholes is not null then perform children_of(v_wholes); end if;
  if not push_graph.whole then
    return push_jobs(v_jobs, push_graph.own, push_graph.now, push_graph.again, push_graph.listener);
  end if;
  -- Stays, whatever becomes of the jobs.
  perform enter(push_graph.own);
  perform queue_of(name) from (select distinct queue as name from json_to_recordset(v_jobs) as given(queue text) order by 1) as queues;
  begin
    v_outcomes := push_jobs(v_jobs, push_graph.own, push_graph.now, push_graph.again, push_graph.listener);
    if exists (select from unnest(v_outcomes) as each(outcome) where outcome ~ '^(full|orphan|held) ') then
      raise exception using errcode = 'MP006';
    end if;
  exception when sqlstate 'MP006' then
    if push_graph.listener is not null then
      insert into sleepers (queue, kind, listener)
      select distinct given.queue, 'room', push_graph.listener
      from rows from (json_to_recordset(v_jobs) as (queue text)) with ordinality as given(queue, nth) where v_outcomes[nth] like 'full %'
      on conflict do nothing;
    end if;
    v_outcomes := array(
      -- A job of the call, whose key or id another one has, is not there either.
      select case when outcome like 'pushed %' or outcome like 'replaced %'
        or outcome like 'existing %' and 'pushed ' || split_part(outcome, ' ', 2) = any (v_outcomes)
        then 'withheld ' || given.id else outcome end
      from rows from (json_to_recordset(v_jobs) as (id uuid)) with ordinality as given(id, nth)
      join unnest(v_outcomes) with ordinality as each(outcome, nth) on each.nth = given.nth order by given.nth);
  end;
  return v_outcomes;
end $$;

-- The jobs of push_graph_list, for push_jobs.
create or replace function millpond.graph_json(
  p_kinds json, p_kind_of integer[], p_ids uuid[], p_data text[], p_children integer[], p_parents integer[], p_outer_children integer[],
  p_outer_parents uuid[]
) returns json
language sql immutable
set enable_hashjoin = on set enable_nestloop = off set enable_mergejoin = off set jit = off
as $$
  select json_agg((p_kinds -> (job.kind - 1))::jsonb
    || jsonb_build_object('id', job.id, 'data', job.data, 'fresh', true, 'after', linked.after) order by job.nth)
  from unnest(p_ids, p_data, p_kind_of) with ordinality as job(id, data, kind, nth) left join (
    select child, json_agg(parent) as after from (
      select child, p_ids[parent] as parent from unnest(p_children, p_parents) as inner_link(child, parent)
      union all
      select child, parent from unnest(p_outer_children, p_outer_parents) as outer_link(child, parent)
    ) as link group by child
  ) as linked on linked.child = job.nth
$$;

-- Many new jobs without keys, in few statements.
-- In:  kinds: JSON list of what jobs have in common: queue priority delay runAt group cost attempts timeout trace onDead. Per job, in step:
--      kind_of, the number of its kind (from 1); ids, which nobody knows yet; data, tagged texts. links: job number `children` waits for
--      the former job number `parents`; job number `outer_children` for the job `outer_parents`. Each pair is there once.
-- Out: as push_graph; null: all were pushed.
create or replace function millpond.push_graph_list(
  kinds json, kind_of integer[], ids uuid[], data text[], children integer[], parents integer[], outer_children integer[],
  outer_parents uuid[], own boolean default true, now bigint default null, again boolean default false, listener text default null,
  whole boolean default false
) returns text[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now      bigint;
  v_counts   integer[] := array_fill(0, array[cardinality(push_graph_list.ids)]);
  v_places   bigint[];
  v_child    integer;
  v_live     uuid[] := '{}';
  v_done     uuid[] := '{}';
  v_children integer[];
  v_parents  uuid[];
  v_listed   boolean;
  v_doubt    boolean;
  v_fence    bigint := 0;
  v_name     text;
  -- Of each kind.
  v_names    text[];
  v_queues   integer[];
  v_dues     bigint[];
  v_grouped  boolean[];
  v_priority smallint[];
  v_costs    integer[];
  v_attempts integer[];
  v_timeouts bigint[];
  v_groups   text[];
  v_traces   text[];
  v_on_dead  text[];
begin
  perform enter(push_graph_list.own);
  v_now := case
    when push_graph_list.own or exists (select from json_to_recordset(push_graph_list.kinds) as given(delay bigint, "runAt" bigint)
      where delay > 0 or "runAt" is not null)
    then enter_later(push_graph_list.own, push_graph_list.now) else time_of(push_graph_list.now) end;
  for v_name in select distinct queue from json_to_recordset(push_graph_list.kinds) as given(queue text) loop
    perform queue_of(v_name);
  end loop;
  select array_agg(queues.name order by nth), array_agg(queues.id order by nth), array_agg(due order by nth),
    array_agg(coalesce(queues.limits = 'groups', false) order by nth), array_agg(priority order by nth),
    array_agg(coalesce(cost, 1) order by nth), array_agg(coalesce(given.attempts, queues.attempts) order by nth),
    array_agg(coalesce(given.timeout, queues.timeout) order by nth), array_agg("group" order by nth), array_agg(trace order by nth),
    array_agg(coalesce(on_dead, 'cancel') order by nth), bool_and(queues.capacity is null) and sees_all()
  into v_names, v_queues, v_dues, v_grouped, v_priority, v_costs, v_attempts, v_timeouts, v_groups, v_traces, v_on_dead, v_listed
  from (
    select each.*, greatest(v_now, coalesce(run_at, v_now + coalesce(delay, 0))) as due
    from rows from (json_to_recordset(push_graph_list.kinds) as (
      queue text, priority smallint, delay bigint, "runAt" bigint, "group" text, cost integer, attempts integer, timeout bigint, trace text,
      "onDead" text
    )) with ordinality as each(queue, priority, delay, run_at, "group", cost, attempts, timeout, trace, on_dead, nth)
  ) as given join queues on queues.name = given.queue;
  -- As of push_list.
  if push_graph_list.again then insert into repeats (at) values (v_now); end if;
  v_doubt := push_graph_list.again or exists (select from repeats);
  if v_doubt then
    v_fence := removed_fence();
    v_listed := v_listed and not exists (select from unnest(push_graph_list.ids) as given(id) where is_known(id));
  end if;
  perform check_job(v_priority[nth], v_dues[nth], v_attempts[nth], v_timeouts[nth], null, v_groups[nth], v_costs[nth], v_traces[nth])
  from generate_subscripts(v_names, 1) as kind(nth);
  if v_listed and cardinality(push_graph_list.outer_parents) > 0 then
    perform hold_parents(push_graph_list.outer_parents);
    select coalesce(array_agg(outer_one.id) filter (where job.state = 'done'), '{}'),
      coalesce(array_agg(outer_one.id) filter (where job.state in ('blocked', 'scheduled', 'waiting', 'running')), '{}'),
      count(*) = count(*) filter (where job.state in ('blocked', 'scheduled', 'waiting', 'running', 'done'))
    into v_done, v_live, v_listed
    from (select distinct unnest(push_graph_list.outer_parents) as id) as outer_one left join lateral (
      select state from all_jobs as known where known.id = outer_one.id offset 0
    ) as job on true;
  end if;
  if not v_listed then
    -- What becomes of each has to be seen job by job.
    return push_graph(graph_json(push_graph_list.kinds, push_graph_list.kind_of, push_graph_list.ids, push_graph_list.data,
      push_graph_list.children, push_graph_list.parents, push_graph_list.outer_children, push_graph_list.outer_parents),
      push_graph_list.own, push_graph_list.now, push_graph_list.again, push_graph_list.listener, push_graph_list.whole);
  end if;
  for at in 1 .. cardinality(push_graph_list.children) loop
    v_child := push_graph_list.children[at];
    if push_graph_list.parents[at] >= v_child then
      raise exception 'InvalidOption: a job waits for a former one of the call' using errcode = '22023';
    end if;
    v_counts[v_child] := v_counts[v_child] + 1;
  end loop;
  for v_child in
    select child from unnest(push_graph_list.outer_children, push_graph_list.outer_parents) as link(child, parent)
    where parent not in (select unnest(v_done))
  loop
    v_counts[v_child] := v_counts[v_child] + 1;
  end loop;
  v_places := array(select nextval('place') from generate_subscripts(push_graph_list.ids, 1));
  insert into waiting (place, pushed_at, due_at, timeout, id, queue, fence, attempts, priority, cost, line, state, "group", trace,
    encoding, data, data_bytes)
  select v_places[nth], v_now, v_dues[kind], v_timeouts[kind], id, v_queues[kind], v_fence, v_attempts[kind],
    v_priority[kind], v_costs[kind],
    case when v_grouped[kind] and open = 0 and v_dues[kind] <= v_now then -1 else 0 end,
    case when open > 0 then 'blocked' when v_dues[kind] > v_now then 'scheduled' else 'waiting' end, v_groups[kind], v_traces[kind],
    encoding_of(data), text_of(data), bytes_of(data)
  from unnest(push_graph_list.ids, push_graph_list.data, push_graph_list.kind_of, v_counts) with ordinality
    as job(id, data, kind, open, nth);
  -- Only now, in a statement of its own: what others commit before they let go of an id is seen from here.
  if v_doubt and (known_ids(push_graph_list.ids) is not null or removed_fence() > v_fence) then
    raise exception 'an id of the push was stored or removed meanwhile: push again' using errcode = '40001';
  end if;
  if v_doubt then perform forget_links(push_graph_list.ids); end if;
  v_children := push_graph_list.children || push_graph_list.outer_children;
  v_parents := array(
    select push_graph_list.ids[parent] from unnest(push_graph_list.parents) with ordinality as link(parent, nth) order by nth
  ) || push_graph_list.outer_parents;
  perform link_set(push_graph_list.ids, array(select v_queues[kind] from unnest(push_graph_list.kind_of) with ordinality as each(kind, nth)
    order by nth), v_places, array(select v_on_dead[kind] from unnest(push_graph_list.kind_of) with ordinality as each(kind, nth)
    order by nth), v_counts, v_children, v_parents, v_done, v_live);
  insert into arrivals (queue, groups)
  select v_queues[kind], array_agg(distinct coalesce(v_groups[kind], '')) from unnest(push_graph_list.kind_of, v_counts) as job(kind, open)
  where v_grouped[kind] and open = 0 and v_dues[kind] <= v_now group by v_queues[kind];
  insert into moves (queue, segment, was, becomes, cause, count)
  select queue, -1, 'new', becomes, 'push', count(*) from (
    select v_queues[kind] as queue,
      case when open > 0 then 'blocked' when v_dues[kind] > v_now then 'scheduled' else 'waiting' end as becomes
    from unnest(push_graph_list.kind_of, v_counts) as job(kind, open)
  ) as each group by queue, becomes;
  for v_name in
    select distinct v_names[kind] from unnest(push_graph_list.kind_of, v_counts) as job(kind, open)
    where open = 0 and v_dues[kind] < v_now + 1000 order by 1
  loop
    perform ring('work', v_name, push_graph_list.own);
  end loop;
  return null;
end $$;
