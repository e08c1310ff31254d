-- list: one queue's jobs in one state, a page at a time.
-- In:  queue, state, limit; after: the last id of the page before, or null.
-- Out: JSON per job as from find: waiting ones in the order of claiming, scheduled ones soonest first, running ones by lease,
--      final ones newest first. Nothing where `after` is gone, or in another state now.

create or replace function millpond.list(queue text, state text, "limit" integer, after uuid default null) returns setof json
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_queue    integer;
  v_ids      uuid[];
  v_last     record;
  -- Above all of them: the first page begins with the highest.
  v_priority smallint := 10;
begin
  select id into v_queue from queues where name = list.queue;
  select 10::smallint as priority, 0::bigint as seq, -1::bigint as due_at, -1::bigint as lease_until,
    9000000000000000 as finished_at into v_last;
  if list.after is not null then
    select j.priority, j.seq, j.due_at, j.lease_until, j.finished_at into v_last
    from jobs as j where j.id = list.after and j.queue = list.queue and j.state = list.state;
    if not found then return; end if;
    v_priority := v_last.priority;
  end if;
  case list.state
    when 'waiting' then
      v_ids := array(
        -- The rest of the cursor's own priority, then the lower ones, of each line.
        select page.id from lines cross join generate_series(1, 10) as level(nth) cross join lateral (
          select id, priority, seq from waiting
          where queue = v_queue and line = lines.line and not scheduled and priority = (10 - level.nth)::smallint
            and seq >= lines.places[level.nth] and seq > case when priority = v_priority then v_last.seq else 0 end
          order by seq limit list."limit"
        ) as page
        where lines.queue = v_queue and 10 - level.nth <= v_priority
        order by page.priority desc, page.seq limit list."limit");
    when 'scheduled' then
      v_ids := array(
        select id from waiting
        where queue = v_queue and scheduled and (due_at, seq) > (v_last.due_at, v_last.seq)
        order by due_at, seq limit list."limit");
    when 'running' then
      v_ids := array(
        select id from running
        where queue = v_queue and (lease_until, seq) > (v_last.lease_until, v_last.seq)
        order by lease_until, seq limit list."limit");
    when 'done' then
      v_ids := array(
        select id from done
        where queue = v_queue and (finished_at, seq) < (v_last.finished_at, v_last.seq)
        order by finished_at desc, seq desc limit list."limit");
    else
      v_ids := array(
        select id from retired
        where queue = v_queue and state = list.state
          and (finished_at, seq) < (v_last.finished_at, v_last.seq)
        order by finished_at desc, seq desc limit list."limit");
  end case;
  return query
    -- offset 0: each is looked up by its id, where the planner would join the whole view first.
    select j.record from unnest(v_ids) with ordinality as page(id, nth) cross join lateral (
      select record_of(one) as record from jobs as one where one.id = page.id offset 0
    ) as j order by page.nth;
end $$;
