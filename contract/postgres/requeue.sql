-- requeue: dead or cancelled jobs get another life.
-- In:  ids; or queue and limit: its dead ones, longest dead first; "until": only those that were dead at this time, null: all.
-- Out: at: the time; queues: the names of the queues of those that wait again, one per job.
-- Invariant: place, fence and last error are kept; the attempts begin anew. One whose key a live job has stays as it is. Of several with
-- one key the first comes back. Of a queue, one whose key another transaction holds is left alone.

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
  v_id     uuid;
  v_queues integer[];
  v_keyed  boolean;
  v_queue  integer;
  v_name   text;
  v_line   integer;
  v_count  integer;
  v_steps  boolean;
  v_parked bigint[];
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
        and (key is null or not exists (select from keys where keys.queue = dead.queue and keys.key = dead.key and until is null offset 0))
      order by finished_at, place limit requeue."limit" for update skip locked);
    begin
      perform set_config('lock_timeout', '50ms', true);
      requeue.queues := (select each.queues from requeue(ids => v_ids, now => v_now) as each);
      return;
    exception when lock_not_available or deadlock_detected then
      -- Another transaction holds one's key.
      foreach v_id in array v_ids loop
        begin
          perform set_config('lock_timeout', '10ms', true);
          requeue.queues := requeue.queues || (select each.queues from requeue(ids => array[v_id], now => v_now) as each);
        exception when lock_not_available or deadlock_detected then null;
        end;
      end loop;
      return;
    end;
  end if;
  v_given := v_ids;
  -- All at once, in the order of ids.
  select array_agg(own.id), array_agg(distinct own.queue), bool_or(own.key is not null) into v_ids, v_queues, v_keyed from (
    select distinct id from unnest(v_given) as one(id) order by id
  ) as given cross join lateral (select id, queue, key from retired where retired.id = given.id for update) as own;
  if v_keyed then
    -- A remembered key holds none back.
    delete from keys where ctid = any (array(
      select one.row_at from unnest(v_ids) as given(id) cross join lateral (
        select queue, key from retired where retired.id = given.id offset 0
      ) as job cross join lateral (
        select ctid as row_at from keys where keys.queue = job.queue and keys.key = job.key and until is not null offset 0
      ) as one)) and until is not null;
    insert into keys (queue, key, id, memory)
      select distinct on (job.queue, job.key) job.queue, job.key, job.id, key_memory(job.remember, job.pushed_at)
      from unnest(v_given) with ordinality as given(id, nth) cross join lateral (
        select * from retired where retired.id = given.id and retired.id = any (v_ids) and key is not null offset 0
      ) as job order by job.queue, job.key, nth
      on conflict do nothing;
  end if;
  v_back := array(
    select id from unnest(v_ids) as given(own) cross join lateral (
      select id, queue, key from retired where retired.id = given.own offset 0
    ) as job
    where key is null or exists (select from keys where keys.queue = job.queue and keys.key = job.key and keys.id = job.id offset 0));
  select * into v_child, v_parent from open_again(v_back);
  v_blocked := array(select distinct unnest(v_child));
  for v_queue, v_name, v_steps in
    select id, name, journals from unnest(v_queues) as given(own) cross join lateral (
      select id, name, journals from millpond.queues where queues.id = given.own offset 0
    ) as q order by id
  loop
    v_line := line_back(v_queue);
    with gone as (
      delete from retired where id = any (v_back) and queue + 0 = v_queue returning *, id = any (v_blocked) as waits
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
    select count(*), array_agg(place) filter (where v_steps) into v_count, v_parked from gone;
    if v_parked is not null then perform unpark(v_parked); end if;
    requeue.queues := requeue.queues || array_fill(v_name, array[v_count]);
  end loop;
  -- A parent may be ending at this moment.
  if cardinality(v_parent) > 0 then perform note_parents(v_parent, '{}'); end if;
  foreach v_name in array array(select distinct unnest(requeue.queues)) loop
    perform ring('work', v_name);
  end loop;
end $$;
