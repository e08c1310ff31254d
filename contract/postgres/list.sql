-- list: one queue's jobs in one state, a page at a time.
-- In:  queue, state, limit; after: a cursor, or null; filter: JSON with any of the filters of contract/operations.md, or null.
-- Out: jobs: JSON list of records, as from find, each with a cursor; next: the cursor to go on from, null: the list ended. Waiting ones
--      in the order of claiming, blocked ones by place, scheduled ones soonest first, running ones by lease, final ones newest first.
--      A cursor is STATE.KEY.PLACE. KEY: the priority, due_at, lease_until or finished_at, by which the state is ordered.
-- Invariant: a page needs no job of the page before: rows move between tables, and the job may be gone. A call looks at max(limit, 1000)
--      jobs at the most, and ends with the job that makes its data 16 MiB.

-- Jobs of a state in the order of the list, after the one with this key and place. Null: from the first one on.
create or replace function millpond.page(p_queue integer, p_state text, p_limit integer, p_key bigint, p_place bigint)
returns table (id uuid, key bigint, place bigint)
language plpgsql stable as $$
#variable_conflict use_column
declare
  v_first constant bigint := case when p_state = 'waiting' then 10 when p_state in ('blocked', 'scheduled', 'running') then -1
    else 9000000000000000 end;
  v_key   constant bigint := coalesce(p_key, v_first);
  v_place constant bigint := coalesce(p_place, 0);
begin
  case p_state
    when 'waiting' then
      return query
        -- The rest of the cursor's own priority, then the lower ones, of each line.
        select ready.id, ready.priority::bigint, ready.place
        from millpond.lines cross join generate_series(1, 10) as level(nth) cross join lateral (
          select id, priority, place from millpond.waiting
          where queue = p_queue and line = lines.line and state = 'waiting' and priority = (10 - level.nth)::smallint
            and place >= lines.places[level.nth] and place > case when priority = v_key then v_place else 0 end
          order by place limit p_limit
        ) as ready
        where lines.queue = p_queue and 10 - level.nth <= v_key
        order by ready.priority desc, ready.place limit p_limit;
    when 'blocked' then
      return query
        select id, 0::bigint, place from millpond.children
        where queue = p_queue and is_blocked and place > v_place order by place limit p_limit;
    when 'scheduled' then
      return query
        select id, due_at, place from millpond.waiting
        where queue = p_queue and state = 'scheduled' and (due_at, place) > (v_key, v_place)
        order by due_at, place limit p_limit;
    when 'running' then
      return query
        select id, lease_until, place from millpond.running
        where queue = p_queue and (lease_until, place) > (v_key, v_place)
        order by lease_until, place limit p_limit;
    when 'done' then
      return query
        select id, finished_at, place from millpond.done
        where queue = p_queue and segment < 8 and (finished_at, place) < (v_key, v_place)
        order by finished_at desc, place desc limit p_limit;
    else
      return query
        select id, finished_at, place from millpond.retired
        where queue = p_queue and state = p_state and (finished_at, place) < (v_key, v_place)
        order by finished_at desc, place desc limit p_limit;
  end case;
end $$;

-- Of its bodies.
create or replace function millpond.bytes_in(j millpond.all_jobs) returns bigint
language sql immutable as $$
  select coalesce(octet_length(j.data), octet_length(j.data_bytes), 0)
    + coalesce(octet_length(j.progress), octet_length(j.progress_bytes), 0)
    + coalesce(octet_length(j.result), octet_length(j.result_bytes), 0)
    + coalesce(octet_length(j.log), 0)::bigint
$$;

-- Whether data, JSON of whatever form, have the value at the place: contract/operations.md, list.
create or replace function millpond.data_has(p_data text, p_wanted jsonb) returns boolean
language plpgsql immutable as $$
declare
  v_value constant text := p_wanted ->> 'value';
  v_at    json;
  v_name  text;
begin
  v_at := p_data::json;
  for v_name in select jsonb_array_elements_text(p_wanted -> 'path') loop
    if json_typeof(v_at) is distinct from 'object' then return false; end if;
    v_at := v_at -> v_name;
  end loop;
  return case json_typeof(v_at)
    when 'string' then v_at #>> '{}' = v_value
    when 'boolean' then v_at #>> '{}' = v_value
    when 'null' then v_value = 'null'
    when 'number' then case when v_value ~ '^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$'
      then (v_at #>> '{}')::numeric = v_value::numeric else false end
    else false
  end;
-- It is no JSON, or holds a text or a number that PostgreSQL has not.
exception when others then
  return false;
end $$;

create or replace function millpond.matches(j millpond.all_jobs, p_filter jsonb) returns boolean
language sql immutable as $$
  select coalesce(j."group", '') = coalesce(p_filter ->> 'group', j."group", '')
    and (p_filter ->> 'key' is null or j.key = p_filter ->> 'key')
    and (p_filter ->> 'errorCode' is null or millpond.field(j.error, 'code') = p_filter ->> 'errorCode')
    and (p_filter ->> 'errorText' is null or strpos(millpond.field(j.error, 'message'), p_filter ->> 'errorText') > 0)
    and j.pushed_at >= coalesce((p_filter ->> 'pushedFrom')::bigint, j.pushed_at)
    and (p_filter ->> 'pushedBefore' is null or j.pushed_at < (p_filter ->> 'pushedBefore')::bigint)
    and (p_filter ->> 'text' is null or j.encoding = 'json' and strpos(j.data, p_filter ->> 'text') > 0)
    and (p_filter ->> 'data' is null or j.encoding = 'json' and millpond.data_has(j.data, p_filter -> 'data'))
$$;

create or replace function millpond.list(
  queue text, state text, "limit" integer, after text default null, filter jsonb default null, out jobs json, out next text
) returns record
language plpgsql stable security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_large   constant bigint  := 16777216;
  v_most    constant integer := greatest(list."limit", 1000);
  v_chunk   constant integer := case when list.filter is null then list."limit" else 100 end;
  v_queue   integer;
  v_key     bigint  := split_part(list.after, '.', 2)::bigint;
  v_place   bigint  := split_part(list.after, '.', 3)::bigint;
  v_records json[]  := '{}';
  v_found   integer := 0;
  v_seen    integer := 0;
  v_bytes   bigint  := 0;
  v_count   integer;
  v_job     all_jobs%rowtype;
  at        record;
begin
  select id into v_queue from queues where name = list.queue;
  <<pages>>
  loop
    v_count := 0;
    -- A job that does not pass is not read as a whole: a statement for each would take longer than the look.
    for at in
      select job.*, look.matches, look.bytes from page(v_queue, list.state, v_chunk, v_key, v_place) as job
      left join lateral (
        select matches(one, list.filter) as matches, case when list.filter ?| '{text,data}' then bytes_in(one) end as bytes
        from all_jobs as one
        where list.filter is not null and one.id = job.id offset 0
      ) as look on true
    loop
      v_count := v_count + 1;
      v_key := at.key;
      v_place := at.place;
      if list.filter is null or at.matches then
        select * into v_job from all_jobs where id = at.id;
        v_found := v_found + 1;
        v_records[v_found] := record_of(v_job)::jsonb || jsonb_build_object('cursor', concat_ws('.', list.state, v_key, v_place));
        v_bytes := v_bytes + bytes_in(v_job);
      else v_bytes := v_bytes + coalesce(at.bytes, 0);
      end if;
      exit pages when v_found = list."limit" or v_bytes >= v_large;
    end loop;
    v_seen := v_seen + v_count;
    if v_count < v_chunk then v_key := null; end if;
    exit when v_key is null or v_seen >= v_most;
  end loop;
  jobs := array_to_json(v_records);
  if v_key is not null then next := concat_ws('.', list.state, v_key, v_place); end if;
end $$;
