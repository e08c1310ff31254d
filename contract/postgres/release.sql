-- release: claims are given back unstarted.
-- In:  queue; ids and fences, in step; pauses: ms in step, or null: none. logs: as of `complete`.
-- Out: which of them were released, counted from 1; null: all.
-- Invariant: the attempt does not count, and the job keeps its place; the fence stays raised. Without a pause its start is given back to
--      the rates; with one, nothing of its group is claimed before that is over, or of the queue if that is not grouped or the job has
--      no group.

create or replace function millpond.release(queue text, ids uuid[], fences bigint[], pauses bigint[] default null,
  logs text[] default null, now bigint default null) returns integer[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_queue    integer;
  v_line     integer;
  v_released integer[];
  v_count    integer;
  v_limits   text;
  v_now      bigint := time_of(release.now);
  v_groups   text[];
  v_jobs     released[];
  v_pause    bigint;
  v_rates    limits;
begin
  perform set_config('synchronous_commit', 'off', true);
  select id, limits into v_queue, v_limits from queues where name = release.queue;
  if not found then return '{}'; end if;
  v_line := line_back(v_queue);
  -- Settings are read without waiting for a claim: what is given back counts by the rates of now, whenever a claim learns of it.
  if v_limits is not null then select * into v_rates from limits where limits.queue = v_queue; end if;
  with given as (
    delete from running using (
      select * from unnest(release.ids, release.fences, release.pauses, release.logs) with ordinality
        as given(id, fence, pause, lines, nth) order by id
    ) as held
    where running.id between held.id and held.id and running.fence = held.fence and running.queue + 0 = v_queue
    returning running.*, held.pause, held.lines, held.nth
  ), back as (
    insert into waiting (place, pushed_at, due_at, timeout, id, queue, fence, attempt, attempts, priority, cost, line, key, "group", trace,
      encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error, log, remember)
    select place, pushed_at, due_at, timeout, id, queue, fence, attempt - 1, attempts, priority, cost, v_line, key, "group", trace,
      encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error,
      case when lines is null then log else log_with(log, lines) end, remember
    from given
  )
  select array_agg(nth::integer), array_agg(distinct coalesce("group", '')),
    array_agg(("group", started_at, cost, coalesce(pause, 0), v_now, v_rates.rate, rate_of(v_rates, coalesce("group", ''), (
      select own.rate from group_limits as own
      where own.queue = v_queue and own.name = coalesce(given."group", '')
    )))::released order by nth),
    max(pause) filter (where "group" is null or v_line <> -1)
  into v_released, v_groups, v_jobs, v_pause from given;
  v_count := coalesce(cardinality(v_released), 0);
  if v_count > 0 then
    insert into moves (queue, segment, was, becomes, cause, count) values (v_queue, -1, 'running', 'waiting', 'release', v_count);
    if v_limits is not null or v_line = -1 then
      insert into arrivals (queue, groups, released)
      values (v_queue, case when v_line = -1 then v_groups else '{}' end, v_jobs);
    end if;
    -- A longer pause stays.
    update queues set paused_until = v_now + v_pause, pause_length = v_pause
    where id = v_queue and v_pause > 0 and pause_end(paused_until, pause_length, v_now) < v_now + v_pause;
    perform ring('work', release.queue);
  end if;
  if v_count = cardinality(release.ids) then return null; end if;
  return coalesce(v_released, '{}');
end $$;
