-- push_set: the jobs of a push whose outcome can be seen for all at once. Part of push_jobs.
-- In:  as push_jobs; own, now and again are its own.
-- Out: per job, in step: settled; outcomes, of those that are settled; places, for all; taken and holders, as of take_keys. given, stands:
--      jobs that were answered with another one, and those. ring: queues whose bells are to ring for work. move: the number of the last
--      note. bounded: a queue has a capacity, whose room is locked.
-- Invariant: it stores the jobs whose outcome no other job of the call can change, and answers those that are there for certain. What is
--      part of others, replaces or follows a job that has its key, may not find room, or is there twice is left; and all that waits for
--      others, unless all of those are stored here, live or done.
create or replace function millpond.push_set(
  p_jobs json, p_own boolean, p_now bigint, p_again boolean,
  out settled boolean[], out outcomes text[], out places bigint[], out taken boolean[], out holders uuid[], out given uuid[],
  out stands uuid[], out ring text[], out move bigint, out bounded boolean
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_doubt    constant boolean := p_again or exists (select from millpond.repeats);
  v_fence    bigint := millpond.removed_fence();
  -- Of each queue.
  v_names    text[];
  v_queues   integer[];
  v_rooms    bigint[];
  v_grouped  boolean[];
  v_attempts integer[];
  v_timeouts bigint[];
  -- Of each job.
  v_ids      uuid[];
  v_kinds    integer[];
  v_keys     text[];
  v_keyed    boolean[];
  v_dues     bigint[];
  v_memory   bigint[];
  v_plain    boolean[];
  v_replace  boolean[];
  v_alone    boolean[];
  v_linked   boolean[];
  v_on_dead  text[];
  v_open     integer[];
  v_stores   boolean[];
  -- Of some.
  v_odd      uuid[];
  v_shared   text[];
  v_old      uuid[];
  v_known    uuid[];
  v_new      uuid[];
  v_taken    uuid[];
  v_full     integer[];
  v_done     uuid[];
  v_live     uuid[];
  -- Of each link, in step.
  v_child    integer[] := '{}';
  v_parent   uuid[];
  v_nth      integer;
begin
  perform millpond.queue_of(name) from (
    select distinct queue as name from json_to_recordset(p_jobs) as each(queue text) order by 1 offset 0
  ) as named;
  v_names := array(select distinct queue from json_to_recordset(p_jobs) as each(queue text));
  select array_agg(name order by id), array_agg(id order by id), array_agg(coalesce(limits = 'groups', false) order by id),
    array_agg(attempts order by id), array_agg(timeout order by id), bool_or(capacity is not null)
  into v_names, v_queues, v_grouped, v_attempts, v_timeouts, bounded from millpond.queues where name = any (v_names);
  select array_agg(id order by nth), array_agg(array_position(v_names, queue) order by nth), array_agg(key order by nth),
    array_agg(key is not null order by nth), array_agg(due order by nth),
    array_agg(millpond.key_memory(remembers, p_now) order by nth), array_agg(once is null order by nth),
    array_agg(coalesce((once ->> 'replace')::boolean, false) order by nth),
    array_agg("partOf" is not null order by nth), array_agg(coalesce(cardinality(after) > 0, false) order by nth),
    array_agg(coalesce("onDead", 'cancel') order by nth), array_fill(0, array[count(*)::integer]),
    coalesce(array_agg(id) filter (where v_doubt or fresh is not true), '{}')
  into v_ids, v_kinds, v_keys, v_keyed, v_dues, v_memory, v_plain, v_replace, v_alone, v_linked, v_on_dead, v_open, v_old
  from (
    select *, millpond.check_job(priority, due, attempts, timeout, key, "group", coalesce(cost, 1), trace),
      case when key is not null and once is not null then millpond.remember_of(once -> 'unique') end as remembers
    from (
      select *, greatest(p_now, least(coalesce("runAt", p_now + coalesce(delay, 0)), p_now + (once ->> 'maxWait')::bigint)) as due
      from rows from (json_to_recordset(p_jobs) as (
        id uuid, queue text, priority smallint, delay bigint, "runAt" bigint, key text, "group" text, attempts integer, timeout bigint,
        trace text, fresh boolean, cost integer, once json, after uuid[], "onDead" text, "partOf" uuid
      )) with ordinality as job(id, queue, priority, delay, "runAt", key, "group", attempts, timeout, trace, fresh, cost, once, after,
        "onDead", "partOf", nth) offset 0
    ) as job offset 0
  ) as job;
  -- Ids that are there twice, and those that the same or a former job names as a parent, when they are not known yet.
  v_odd := array(
    select id from (
      select id, nth, null::bigint as child from unnest(v_ids) with ordinality as each(id, nth)
      union all
      select parent, null, child from rows from (json_to_recordset(p_jobs) as (after uuid[], "partOf" uuid))
        with ordinality as each(after, part_of, child) cross join unnest(after || part_of) as parent where true = any (v_linked || v_alone)
    ) as named group by id having count(nth) > 1 or min(child) <= min(nth));
  v_known := array(select id from millpond.waiting where id = any (v_old));
  if cardinality(v_old) > 0 then v_known := v_known || millpond.known_ids(v_old); end if;
  -- Which job is the first with one of their keys is seen one after the other, too.
  v_shared := array(
    select distinct kind || key from unnest(v_ids, v_kinds, v_keys) as job(id, kind, key)
    where key is not null and cardinality(v_odd) > 0 and id in (select unnest(v_odd)));
  -- Jobs that are part of others make former ones wait for them.
  select array_agg(alone or linked and true = any (v_alone) or id in (select unnest(v_odd)) order by nth),
    array_agg(case when id not in (select unnest(v_known))
      and kind || key not in (select unnest(v_shared)) then key end order by nth)
  into v_alone, v_keys
  from unnest(v_ids, v_kinds, v_keys, v_alone, v_linked) with ordinality as job(id, kind, key, alone, linked, nth);
  select t.taken, t.holders into taken, holders
  from millpond.take_keys(array(select v_queues[kind] from unnest(v_kinds) with ordinality as each(kind, nth) order by nth),
    v_keys, v_ids, v_memory, v_plain, v_replace, p_now) as t;
  -- Only now: who waits for a key keeps nobody from the room.
  if bounded then
    perform millpond.enter_rooms(v_names);
    select array_agg(case when capacity is not null then millpond.room_in(id, capacity, p_own) end order by id)
    into v_rooms from millpond.queues where id = any (v_queues);
  end if;
  places := array(select nextval('millpond.place') from generate_subscripts(v_ids, 1));
  v_full := array(
    select kind from unnest(v_kinds) as each(kind) where v_rooms[kind] is not null group by kind having count(*) > min(v_rooms[kind]));
  v_stores := array(
    select not alone and kind <> all (v_full) and (not has_key or has) and id not in (select unnest(v_known))
    from unnest(v_ids, v_kinds, v_keyed, taken, v_alone) with ordinality as job(id, kind, has_key, has, alone, nth) order by nth);
  if true = any (v_linked) then
    select coalesce(array_agg(child), '{}'), coalesce(array_agg(parent), '{}') into v_child, v_parent from (
      select distinct nth::integer as child, parent from rows from (json_to_recordset(p_jobs) as (after uuid[])) with ordinality
        as job(after, nth) cross join lateral unnest(after) as parent where v_stores[nth]
    ) as link;
    v_new := array(select id from unnest(v_ids, v_stores) as job(id, stores) where stores);
    v_taken := array(select distinct parent from unnest(v_parent) as parent where parent not in (select unnest(v_new)));
    perform millpond.hold_parents(v_taken);
    select coalesce(array_agg(id) filter (where state = 'done'), '{}'), coalesce(array_agg(id) filter (where state <> 'done'), '{}')
    into v_done, v_live from (
      select id, (select state from millpond.jobs where jobs.id = parent.id) as state from unnest(v_taken) as parent(id) offset 0
    ) as parent where state not in ('dead', 'cancelled');
    if cardinality(v_done) + cardinality(v_live) < cardinality(v_taken) then
      v_child := '{}';
      v_parent := '{}';
      v_stores := array(select stores and not linked
      from unnest(v_stores, v_linked) with ordinality as job(stores, linked, nth) order by nth);
    end if;
    for v_nth in select child from unnest(v_child, v_parent) as link(child, parent) where parent not in (select unnest(v_done)) loop
      v_open[v_nth] := v_open[v_nth] + 1;
    end loop;
  end if;
  with stored as (
    insert into millpond.waiting (place, pushed_at, due_at, timeout, id, queue, fence, attempts, priority, cost, line, state, key, "group",
      trace, encoding, data, data_bytes, remember)
    select places[nth], p_now, v_dues[nth], coalesce(timeout, v_timeouts[kind]), id, v_queues[kind], v_fence,
      coalesce(attempts, v_attempts[kind]), priority, coalesce(cost, 1),
      case when v_grouped[kind] and v_dues[nth] <= p_now and v_open[nth] = 0 then -1 else 0 end,
      case when v_open[nth] > 0 then 'blocked' when v_dues[nth] > p_now then 'scheduled' else 'waiting' end,
      key, "group", trace, millpond.encoding_of(data), millpond.text_of(data), millpond.bytes_of(data),
      case when key is not null then millpond.remember_of(once -> 'unique') end
    from (
      select *, v_kinds[nth] as kind from rows from (json_to_recordset(p_jobs) as (
        id uuid, priority smallint, key text, "group" text, attempts integer, timeout bigint, trace text, data text, cost integer, once json
      )) with ordinality as each(id, priority, key, "group", attempts, timeout, trace, data, cost, once, nth) where v_stores[nth] offset 0
    ) as job
    -- In one order for all, as others may store the same ids.
    order by id on conflict do nothing returning id
  )
  select coalesce(array_agg(id), '{}') into v_new from stored;
  -- Only now, in a statement of its own: what others commit before they let go of an id is seen from here.
  v_old := array(select unnest(v_old) intersect select unnest(v_new));
  if cardinality(v_old) > 0 then
    v_taken := millpond.known_ids(v_old);
    delete from millpond.waiting where id = any (v_taken);
    v_new := case when v_taken is null then v_new else array(select unnest(v_new) except select unnest(v_taken)) end;
    if millpond.removed_fence() > v_fence then update millpond.waiting set fence = millpond.removed_fence() where id = any (v_old); end if;
    perform millpond.forget_links(v_old);
  end if;
  -- The same id was pushed by another at the same time.
  if cardinality(v_new) < (select count(*) from unnest(v_stores) as stores where stores) then
    for v_nth in
      select nth from unnest(v_ids, v_stores) with ordinality as job(id, stores, nth) where stores and id not in (select unnest(v_new))
    loop
      delete from millpond.keys where queue = v_queues[v_kinds[v_nth]] and key = v_keys[v_nth] and id = v_ids[v_nth];
      holders := array_replace(holders, v_ids[v_nth], null);
      taken[v_nth] := false;
      v_stores[v_nth] := false;
    end loop;
    -- Others may have waited for it.
    v_child := '{}';
    delete from millpond.waiting where id = any (array(
      select id from unnest(v_ids, v_stores, v_linked) as job(id, stores, linked) where stores and linked));
    v_stores := array(select stores and not linked
      from unnest(v_stores, v_linked) with ordinality as job(stores, linked, nth) order by nth);
  end if;
  if cardinality(v_child) > 0 then
    perform millpond.link_set(v_ids, array(select v_queues[kind] from unnest(v_kinds) with ordinality as each(kind, nth) order by nth),
      places, v_on_dead, v_open, v_child, v_parent, v_done, v_live);
  end if;
  select array_agg(stores or known is not null order by nth), array_agg(
    case when stores or p_again and known = id then 'pushed ' || id else 'existing ' || known end order by nth),
    array_agg(id order by nth) filter (where known <> id), array_agg(known order by nth) filter (where known <> id)
  into settled, outcomes, given, stands from (
    select *, case when alone or stores then null when id in (select unnest(v_known)) then id
      when not linked and holder not in (select unnest(v_ids)) then holder end as known
    from unnest(v_ids, v_stores, v_alone, v_linked, holders) with ordinality as job(id, stores, alone, linked, holder, nth) offset 0
  ) as job;
  select max(millpond.note_pushed(v_queues[kind], waiting, scheduled, blocked)) into move from (
    select kind, count(*) filter (where open = 0 and due <= p_now)::integer as waiting,
      count(*) filter (where open = 0 and due > p_now)::integer as scheduled, count(*) filter (where open > 0)::integer as blocked
    from unnest(v_kinds, v_dues, v_open, v_stores) as job(kind, due, open, stores) where stores group by kind offset 0
  ) as each;
  if true = any (v_grouped) then
    insert into millpond.arrivals (queue, groups)
    select v_queues[v_kinds[nth]], array_agg(distinct coalesce("group", ''))
    from rows from (json_to_recordset(p_jobs) as ("group" text)) with ordinality as job("group", nth)
    where v_stores[nth] and v_open[nth] = 0 and v_dues[nth] <= p_now and v_grouped[v_kinds[nth]] group by 1;
  end if;
  ring := array(
    select distinct v_names[kind] from unnest(v_kinds, v_dues, v_open, v_stores) as job(kind, due, open, stores)
    where stores and open = 0 and due < p_now + 1000);
end $$;
