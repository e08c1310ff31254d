-- complete: claims' jobs are done.
-- In:  queue; ids and fences, in step. results: tagged texts, null where there is none, in step, too; null: no results. logs: new lines
--      of each job's log, with a line feed between them, in the same way.
-- Out: which of them were completed, counted from 1; null: all.
-- Invariant: only the claim whose fence is the job's can complete it. With keep_done 0 nothing is kept. Children: graphs.sql.
--      Rows of `running` are locked in the order of their ids, here and wherever several are: so no two calls wait for each other.

create or replace function millpond.complete(
  queue text, ids uuid[], fences bigint[], results text[] default null, logs text[] default null, now bigint default null
) returns integer[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now     bigint := time_of(complete.now);
  v_queue   integer;
  v_keep    bigint;
  v_segment smallint := -1;
  v_done    integer[];
  v_keys    text[];
  v_free    integer;
  v_count   integer;
  v_freed   text[];
  v_slots   boolean;
begin
  select id, keep_done into v_queue, v_keep from queues where name = complete.queue;
  if not found then return '{}'; end if;
  if v_keep > 0 then
    v_segment := current_segment();
    with ended as (
      delete from running using (
        select * from unnest(complete.ids, complete.fences, complete.results, complete.logs) with ordinality
          as given(id, fence, result, lines, nth) order by id
      ) as held
      where running.id between held.id and held.id and running.fence = held.fence and running.queue + 0 = v_queue
      returning running.*, held.result, held.lines, held.nth
    ), kept as (
      insert into done (place, pushed_at, due_at, timeout, started_at, id, queue, fence, attempt, attempts, priority, cost, line, key,
        "group",
        trace, worker, encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error, log, remember, finished_at,
        segment,
        result_encoding, result, result_bytes)
      select place, pushed_at, due_at, timeout, started_at, id, queue, fence, attempt, attempts, priority, cost, 0, key, "group",
        trace, worker, encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error,
        case when lines is null then log else log_with(log, lines) end, remember, v_now, v_segment,
        encoding_of(result), text_of(result), bytes_of(result)
      from ended
    )
    select array_agg(nth::integer), array_agg(key) filter (where key is not null),
      array_agg(distinct coalesce("group", '')) filter (where line = -1), bool_or(line < 0)
    into v_done, v_keys, v_freed, v_slots from ended;
  else
    with ended as (
      delete from running using (
        select * from unnest(complete.ids, complete.fences) with ordinality as given(id, fence, nth) order by id
      ) as held
      where running.id between held.id and held.id and running.fence = held.fence and running.queue + 0 = v_queue
      returning running.key, running."group", running.line, held.nth
    )
    select array_agg(nth::integer), array_agg(key) filter (where key is not null),
      array_agg(distinct coalesce("group", '')) filter (where line = -1), bool_or(line < 0)
    into v_done, v_keys, v_freed, v_slots from ended;
  end if;
  v_count := coalesce(cardinality(v_done), 0);
  if v_count > 0 then
    if v_keys is not null then
      -- In the order in which pushes take keys.
      delete from keys where ctid = any (array(
        select own.row_at from (select key from unnest(v_keys) as one(key) order by key) as given cross join lateral (
          select ctid as row_at from keys
          where queue = v_queue and keys.key = given.key and memory is null and follower is null and until is null for update
        ) as own));
      get diagnostics v_free = row_count;
      -- Held, as below: a follower may be due then, or a child.
      if v_free < cardinality(v_keys) then perform leave_keys(v_queue, v_keys, hold_time('due', complete.now)); end if;
    end if;
    insert into moves (queue, segment, was, becomes, cause, count)
    values (v_queue, v_segment, 'running', case when v_keep > 0 then 'done' else 'gone' end, 'complete', v_count);
    if v_freed is not null then insert into arrivals (queue, groups, freed) values (v_queue, v_freed, true); end if;
    perform ring('finished', complete.queue);
    if v_slots then perform ring('work', complete.queue); end if;
    if has_children(v_queue) then
      perform ring_all(end_of(array(select complete.ids[nth] from unnest(v_done) as nth), 'done',
        hold_time('due', complete.now)));
    end if;
  end if;
  if v_count = cardinality(complete.ids) then return null; end if;
  return coalesce(v_done, '{}');
end $$;
