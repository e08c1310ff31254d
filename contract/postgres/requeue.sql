-- requeue: dead or cancelled jobs get another life.
-- In:  ids; or queue and limit: its dead ones, longest dead first; "until": only those that were dead at this time, null: all.
-- Out: at: the time; queues: the names of the queues of those that wait again, one per job.
-- Invariant: place, fence and last error are kept; the attempts begin anew. One whose key a live job has stays as it is.

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
  v_id     uuid;
  v_name   text;
  v_line   integer;
  job      retired%rowtype;
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
  for v_id in select id from unnest(v_ids) as given(id) order by id loop
    select * into job from retired where id = v_id for update;
    continue when not found;
    if job.key is not null then
      continue when not take_key(job.queue, job.key, job.id, key_memory(job.remember, job.pushed_at), 9223372036854775807);
    end if;
    delete from retired where id = v_id;
    v_line := line_back(job.queue);
    insert into waiting (place, pushed_at, due_at, timeout, id, queue, fence, attempts, priority, cost, line, key, "group", trace,
      encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error, log, remember)
    values (job.place, job.pushed_at, v_now, job.timeout, job.id, job.queue, job.fence, job.attempts, job.priority, job.cost, v_line,
      job.key, job."group",
      job.trace, job.encoding, job.data, job.data_bytes, job.progress_encoding, job.progress, job.progress_bytes, job.error,
      job.log, job.remember);
    if v_line = -1 then insert into arrivals (queue, groups) values (job.queue, array[coalesce(job."group", '')]); end if;
    insert into moves (queue, segment, was, becomes, cause, count) values (job.queue, -1, job.state, 'waiting', 'requeue', 1);
    select name into v_name from millpond.queues where id = job.queue;
    requeue.queues := requeue.queues || v_name;
  end loop;
  foreach v_name in array array(select distinct unnest(requeue.queues)) loop
    perform ring('work', v_name);
  end loop;
end $$;
