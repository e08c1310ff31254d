-- list: one queue's jobs in one state, a page at a time.
-- In:  queue, state, limit; after: the cursor of the last job of the page before, or null.
-- Out: JSON per job: record, as from find, and cursor: waiting ones in the order of claiming, scheduled ones soonest first, running ones by
--      lease, final ones newest first. A cursor is STATE.KEY.SEQ. KEY: the priority, due_at, lease_until or finished_at, by which the state is ordered.
-- Invariant: a page needs no job of the page before: rows move between tables, and the job may be gone.

create or replace function millpond.list(queue text, state text, "limit" integer, after text default null) returns setof json
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_queue   integer;
  v_ids     uuid[];
  v_cursors text[];
  -- What the last job of the page before was ordered by; of the first page, before all.
  v_key     bigint := -1;
  v_seq     bigint := 0;
begin
  select id into v_queue from queues where name = list.queue;
  if list.after is not null then
    v_key := split_part(list.after, '.', 2)::bigint;
    v_seq := split_part(list.after, '.', 3)::bigint;
  elsif list.state not in ('waiting', 'scheduled', 'running') then v_key := 9000000000000000;
  elsif list.state = 'waiting' then v_key := 10;
  end if;
  case list.state
    when 'waiting' then
      select array_agg(id), array_agg(concat_ws('.', list.state, priority, seq)) into v_ids, v_cursors from (
        -- The rest of the cursor's own priority, then the lower ones, of each line.
        select page.id, page.priority, page.seq
        from lines cross join generate_series(1, 10) as level(nth) cross join lateral (
          select id, priority, seq from waiting
          where queue = v_queue and line = lines.line and not scheduled and priority = (10 - level.nth)::smallint
            and seq >= lines.places[level.nth] and seq > case when priority = v_key then v_seq else 0 end
          order by seq limit list."limit"
        ) as page
        where lines.queue = v_queue and 10 - level.nth <= v_key
        order by page.priority desc, page.seq limit list."limit") as page;
    when 'scheduled' then
      select array_agg(id), array_agg(concat_ws('.', list.state, due_at, seq)) into v_ids, v_cursors from (
        select id, due_at, seq from waiting
        where queue = v_queue and scheduled and (due_at, seq) > (v_key, v_seq)
        order by due_at, seq limit list."limit") as page;
    when 'running' then
      select array_agg(id), array_agg(concat_ws('.', list.state, lease_until, seq)) into v_ids, v_cursors from (
        select id, lease_until, seq from running
        where queue = v_queue and (lease_until, seq) > (v_key, v_seq)
        order by lease_until, seq limit list."limit") as page;
    when 'done' then
      select array_agg(id), array_agg(concat_ws('.', list.state, finished_at, seq)) into v_ids, v_cursors from (
        select id, finished_at, seq from done
        where queue = v_queue and (finished_at, seq) < (v_key, v_seq)
        order by finished_at desc, seq desc limit list."limit") as page;
    else
      select array_agg(id), array_agg(concat_ws('.', list.state, finished_at, seq)) into v_ids, v_cursors from (
        select id, finished_at, seq from retired
        where queue = v_queue and state = list.state and (finished_at, seq) < (v_key, v_seq)
        order by finished_at desc, seq desc limit list."limit") as page;
  end case;
  return query
    -- offset 0: each is looked up by its id, where the planner would join the whole view first.
    select json_build_object('record', j.record, 'cursor', page.cursor)
    from unnest(v_ids, v_cursors) with ordinality as page(id, cursor, nth) cross join lateral (
      select record_of(one) as record from jobs as one where one.id = page.id offset 0
    ) as j order by page.nth;
end $$;
