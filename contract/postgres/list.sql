-- list: one queue's jobs in one state, a page at a time.
-- In:  queue, state, limit; after: the last id of the page before, or null.
-- Out: JSON per job as from find: waiting ones in the order of claiming, scheduled ones soonest first, running ones by lease,
--      final ones newest first. Nothing where `after` is gone, or in another state now.

create or replace function millpond.list(queue text, state text, "limit" integer, after uuid default null) returns setof json
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_queue    integer;
  v_ids      uuid[];
  v_last     record;
  v_back     bigint;
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
        -- The rest of the cursor's own priority, then the lower ones: ranges of the index, where an `or` would be a scan.
        select page.id from unnest(array[0, 1]::smallint[]) as lanes(lane) cross join lateral (
          (select id, priority, seq from waiting
           where queue = v_queue and lane = lanes.lane and not scheduled and priority = v_priority and seq > v_last.seq
           order by seq limit list."limit")
          union all
          (select id, priority, seq from waiting
           where queue = v_queue and lane = lanes.lane and not scheduled and priority < v_priority
           order by priority desc, seq limit list."limit")
        ) as page order by page.priority desc, page.seq limit list."limit");
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
      -- Ever further back, until there are enough: the index finds times, but in no order.
      foreach v_back in array array[60000, 3600000, 86400000, 9000000000000000] loop
        v_ids := array(
          select id from done
          where queue = v_queue and finished_at >= least(v_last.finished_at, time_of(null)) - v_back and finished_at <= v_last.finished_at
            and (finished_at, seq) < (v_last.finished_at, v_last.seq)
          order by finished_at desc, seq desc limit list."limit");
        exit when cardinality(v_ids) = list."limit";
      end loop;
    else
      v_ids := array(
        select id from retired
        where queue = v_queue and state = list.state
          and (finished_at, seq) < (v_last.finished_at, v_last.seq)
        order by finished_at desc, seq desc limit list."limit");
  end case;
  return query
    select record_of(j) from unnest(v_ids) with ordinality as page(id, nth) cross join lateral (
      select * from jobs as one where one.id = page.id
    ) as j order by page.nth;
end $$;
