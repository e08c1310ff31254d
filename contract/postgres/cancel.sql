-- cancel: jobs are not wanted any more.
-- In:  ids.
-- Out: a text per id: its queue, a space, what it was (blocked, scheduled, waiting, running: cancelled now; or the final state that it
--      keeps); empty: unknown.
-- Invariant: final states do not change. The fence stays, so the worker's next operation is stale.

create or replace function millpond.cancel(ids uuid[], now bigint default null) returns text[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now      bigint := hold_time('due', cancel.now);
  v_outcomes text[] := array_fill(''::text, array[cardinality(cancel.ids)]);
  v_ring     text[] := '{}';
  v_parents  uuid[] := '{}';
  v_nth      bigint;
  v_id       uuid;
  v_was      text;
  v_name     text;
  v_limits   text;
  v_keep     bigint;
  v_waiting  waiting%rowtype;
  job        running%rowtype;
begin
  for v_id, v_nth in select * from unnest(cancel.ids) with ordinality as given(id, nth) order by id loop
    v_was := null;
    -- A job may be on its way from one table to the next: what is in none of them is looked for once more.
    loop
      delete from waiting where id = v_id returning * into v_waiting;
      if found then
        job := v_waiting;
        v_was := v_waiting.state;
        if v_was = 'waiting' and is_milestone(v_waiting.line, v_waiting.place) then
          perform advance(v_waiting.queue, v_waiting.line > 0);
        end if;
        if v_was = 'blocked' then perform unblock(v_id); end if;
        exit;
      end if;
      delete from running where id = v_id returning * into job;
      if found then
        v_was := 'running';
        exit;
      end if;
      select (select name from queues where id = known.queue) || ' ' || state into v_was from all_jobs as known where known.id = v_id;
      exit when v_was is null or split_part(v_was, ' ', 2) in ('done', 'dead', 'cancelled');
    end loop;
    if v_was in ('blocked', 'scheduled', 'waiting', 'running') then
      select name, keep_dead, limits into v_name, v_keep, v_limits from queues where id = job.queue;
      perform retire(job, 'cancelled', 'cancel', v_now, v_keep);
      if has_children(job.queue) then v_parents := v_parents || v_id; end if;
      v_ring := v_ring || ('finished:' || v_name) || (case when v_was = 'running' then 'cancelled:' else 'room:' end || v_name);
      -- The job after it may start now: also where the group's first job was held by its cost.
      if v_limits is not null then v_ring := v_ring || ('work:' || v_name); end if;
      v_was := v_name || ' ' || v_was;
    end if;
    v_outcomes[v_nth] := coalesce(v_was, '');
  end loop;
  if v_parents <> '{}' then v_ring := v_ring || end_of(v_parents, 'cancelled', v_now); end if;
  perform ring_all(v_ring);
  return v_outcomes;
end $$;
