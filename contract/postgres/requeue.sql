-- requeue: dead or cancelled jobs get another life.
-- In:  ids; or queue and limit: its dead ones, longest dead first; "until": only those that were dead at this time, null: all.
-- Out: at: the time; queues: the names of the queues of those that wait again, one per job.
-- Invariant: place, fence and last error are kept; the attempts begin anew. One whose key a live job has stays as it is. Of several with
-- one key the first comes back.

create or replace function millpond.requeue(
  ids uuid[] default null, queue text default null, "limit" integer default null, now bigint default null, "until" bigint default null,
  out at bigint, out queues text[]
) returns record
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now    bigint := time_of(requeue.now);
  v_ids    uuid[] := requeue.ids;
  v_given  uuid[];
  v_queue  integer;
  v_name   text;
  v_line   integer;
  v_count  integer;
  v_back   uuid[];
  v_child  uuid[];
  v_parent uuid[];
  v_blocked uuid[];
begin
  requeue.at := v_now;
  requeue.queues := '{}';
  if v_ids is null then
    v_ids := array(
      select id from retired as dead
      where queue = (select id from millpond.queues where name = requeue.queue) and state = 'dead'
        -- Left out here, so that they cannot fill the limit and hide others for ever.
        and (requeue."until" is null or finished_at < requeue."until" or finished_at = requeue."until" and due_at < requeue."until")
        and (key is null or not exists (select from keys where keys.queue = dead.queue and keys.key = dead.key and keys.until is null))
      order by finished_at, place limit requeue."limit" for update skip locked);
  end if;
  v_given := v_ids;
  -- All at once, in the order of ids.
  v_ids := array(select id from retired where id = any (v_ids) order by id for update);
  -- A remembered key holds none back.
  delete from keys using retired where retired.id = any (v_ids) and keys.queue = retired.queue and keys.key = retired.key
    and keys.until is not null;
  insert into keys (queue, key, id, memory)
    select distinct on (queue, key) queue, key, retired.id, key_memory(remember, pushed_at)
    from unnest(v_given) with ordinality as given(id, nth) join retired on retired.id = given.id
    where retired.id = any (v_ids) and key is not null order by queue, key, nth
    on conflict do nothing;
  v_back := array(
    select id from retired as job where id = any (v_ids)
      and (key is null or exists (select from keys where keys.queue = job.queue and keys.key = job.key and keys.id = job.id)));
  select * into v_child, v_parent from open_again(v_back);
  v_blocked := array(select distinct unnest(v_child));
  for v_queue, v_name in
    select id, name from millpond.queues where id in (select queue from retired where id = any (v_ids)) order by id
  loop
    v_line := line_back(v_queue);
    with gone as (
      delete from retired where id = any (v_back) and queue = v_queue returning *, id = any (v_blocked) as waits
    ), back as (
      insert into waiting (place, pushed_at, due_at, timeout, id, queue, fence, attempts, priority, cost, line, state, key, "group",
        trace, encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error, log, remember)
      select place, pushed_at, v_now, timeout, id, queue, fence, attempts, priority, cost, case when waits then 0 else v_line end,
        case when waits then 'blocked' else 'waiting' end, key, "group",
        trace, encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error, log, remember
      from gone
    ), arrived as (
      insert into arrivals (queue, groups)
      select v_queue, array_agg(distinct coalesce("group", '')) from gone where v_line = -1 and not waits having count(*) > 0
    ), moved as (
      insert into moves (queue, segment, was, becomes, cause, count)
      select v_queue, -1, state, case when waits then 'blocked' else 'waiting' end, 'requeue', count(*) from gone group by state, waits
    )
    select count(*) into v_count from gone;
    requeue.queues := requeue.queues || array_fill(v_name, array[v_count]);
  end loop;
  -- A parent may be ending at this moment.
  if cardinality(v_parent) > 0 then perform note_parents(v_parent, '{}'); end if;
  foreach v_name in array array(select distinct unnest(requeue.queues)) loop
    perform ring('work', v_name);
  end loop;
end $$;
