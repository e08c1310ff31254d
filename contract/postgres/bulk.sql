-- bulk: one change to the jobs of a state that pass a filter, a step at a time.
-- In:  queue, state; change: requeue, cancel, remove or update; "limit": changes so many at most, 0: only counts; after: the next of the
--      step before, or null; filter: JSON, as of list, or null; "until": only those that were in the state at this time, null: all;
--      priority, run_at: of an update, null: stays.
-- Out: looked, matched, changed: how many; sample: of a count, the ids of the first ones, at most ten; next: where to go on, null: the
--      list ended; at: the time.
-- Invariant: a job is changed only if it is in the state and passes at that moment: the row that passed is locked as it is. One that
--      another transaction holds, or whose key one holds, is left alone, as it is changing. A call looks at 10,000 jobs at the most, at
--      1,000 if they are blocked or waiting, and ends at 16 MiB of data that were searched. It goes through a state in the order of list,
--      and an update passes over jobs that are as it would make them, so no job is changed twice.

create or replace function millpond.change_all(
  p_change text, p_ids uuid[], p_priority integer, p_run_at bigint, p_now bigint
) returns integer
language plpgsql as $$
begin
  return case p_change
    when 'requeue' then (select cardinality(queues) from millpond.requeue(ids => p_ids, now => p_now))
    when 'cancel' then cardinality(millpond.cancel(p_ids, p_now))
    when 'remove' then (select removed from millpond.remove(ids => p_ids, now => p_now))
    when 'update' then cardinality(millpond.update((
      select json_agg(json_build_object('id', id, 'priority', p_priority, 'runAt', p_run_at)) from unnest(p_ids) as given(id)
    ), p_now)) end;
end $$;

-- Changes these jobs, whose rows are locked, but for those whose keys another transaction holds. Returns how many.
create or replace function millpond.change_free(
  p_change text, p_ids uuid[], p_priority integer, p_run_at bigint, p_now bigint
) returns integer
language plpgsql as $$
declare
  v_count integer := 0;
  v_id    uuid;
begin
  begin
    perform set_config('lock_timeout', '50ms', true);
    return millpond.change_all(p_change, p_ids, p_priority, p_run_at, p_now);
  exception when lock_not_available or deadlock_detected then null;
  end;
  foreach v_id in array p_ids loop
    begin
      perform set_config('lock_timeout', '10ms', true);
      v_count := v_count + millpond.change_all(p_change, array[v_id], p_priority, p_run_at, p_now);
    exception when lock_not_available or deadlock_detected then null;
    end;
  end loop;
  return v_count;
end $$;

create or replace function millpond.bulk(
  queue text, state text, change text, "limit" integer, after text default null, filter jsonb default null, "until" bigint default null,
  priority integer default null, run_at bigint default null, now bigint default null,
  out looked integer, out matched integer, out changed integer, out sample uuid[], out next text, out at bigint
) returns record
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_large constant bigint  := 16777216;
  v_look  constant integer := case when bulk.state in ('blocked', 'waiting') then greatest(bulk."limit", 1000) else 10000 end;
  v_table constant text    := case when bulk.state in ('blocked', 'scheduled', 'waiting') then 'waiting'
    when bulk.state in ('running', 'done') then bulk.state else 'retired' end;
  v_queue integer;
  v_key   bigint := split_part(bulk.after, '.', 2)::bigint;
  v_place bigint := split_part(bulk.after, '.', 3)::bigint;
  v_bytes bigint := 0;
  v_rows  tid[]  := '{}';
  v_ids   uuid[] := '{}';
  v_tests text[] := '{true}';
  v_test  text;
  v_look_at text;
  v_job   record;
begin
  perform read_committed();
  -- What is null is not asked for.
  bulk.filter := jsonb_strip_nulls(bulk.filter);
  -- Taken before the look: what is changed may be due sooner than the look is over.
  bulk.at := case when bulk."limit" > 0 then hold_time('due', bulk.now) else time_of(bulk.now) end;
  bulk.looked := 0;
  bulk.matched := 0;
  bulk.changed := 0;
  bulk.sample := '{}';
  select id into v_queue from queues where name = bulk.queue;
  -- Planned for these filters alone. $1: filter, $2: until, $3: priority, $4: run_at, $5: now.
  if bulk.filter ? 'group' then v_tests := v_tests || 'coalesce("group", '''') = $1 ->> ''group'''::text; end if;
  if bulk.filter ? 'key' then v_tests := v_tests || 'key = $1 ->> ''key'''::text; end if;
  if bulk.filter ? 'pushedFrom' then v_tests := v_tests || 'pushed_at >= ($1 ->> ''pushedFrom'')::bigint'::text; end if;
  if bulk.filter ? 'pushedBefore' then v_tests := v_tests || 'pushed_at < ($1 ->> ''pushedBefore'')::bigint'::text; end if;
  if bulk.filter ? 'errorCode' then v_tests := v_tests || (may_have('$1 ->> ''errorCode''', bulk.filter ->> 'errorCode')
    || ' and field(error, ''code'') = $1 ->> ''errorCode'''); end if;
  if bulk.filter ? 'errorText' then v_tests := v_tests || (may_have('$1 ->> ''errorText''', bulk.filter ->> 'errorText')
    || ' and strpos(field(error, ''message''), $1 ->> ''errorText'') > 0'); end if;
  if bulk.filter ? 'text' then v_tests := v_tests || 'encoding = ''json'' and strpos(data, $1 ->> ''text'') > 0'::text; end if;
  if bulk.filter ? 'data' then v_tests := v_tests || 'encoding = ''json'' and millpond.data_has(data, $1 -> ''data'')'::text; end if;
  if bulk."until" is not null then v_tests := v_tests || case
    when v_table in ('retired', 'done') then '(finished_at < $2 or finished_at = $2 and due_at < $2)'
    when v_table = 'running' then 'pushed_at <= $2 and started_at <= $2'
    else 'pushed_at <= $2 and (started_at is null or started_at < $2)' end; end if;
  if bulk.change = 'update' then v_tests := v_tests || 'not (priority = coalesce($3, priority)
    and ($4 is null or due_at = $4 or state = ''waiting'' and $4 <= $5))'::text; end if;
  v_test := array_to_string(v_tests, ' and ');

  v_look_at := case
    when bulk.state in ('blocked', 'waiting') then 'select job.*, at.key as key_at, at.place as place_at
      from page($6, $10, $9, $7, $8) as at left join lateral (
        select *, ctid as row_at from waiting where id = at.id and state = $10 offset 0) as job on true'
    when bulk.state = 'scheduled' then 'select *, ctid as row_at, due_at as key_at, place as place_at from waiting where queue = $6
      and state = ''scheduled'' and (due_at, place) > (coalesce($7, -1), coalesce($8, 0)) order by due_at, place limit $9'
    when bulk.state = 'running' then 'select *, ctid as row_at, lease_until as key_at, place as place_at from running where queue = $6
      and (lease_until, place) > (coalesce($7, -1), coalesce($8, 0)) order by lease_until, place limit $9'
    else format('select *, ctid as row_at, finished_at as key_at, place as place_at from %I where queue = $6 and state = $10 %s
      and (finished_at, place) < (coalesce($7, 9000000000000000), coalesce($8, 0))
      order by finished_at desc, place desc limit $9', v_table, case v_table when 'done' then 'and segment < 8' end) end;
  v_look_at := 'select id, row_at as row, key_at as key, place_at as place, coalesce(' || v_test || ', false) as matches, '
    || case when bulk.filter ?| '{text,data}' then 'octet_length(data)' else '0' end || ' as bytes from (' || v_look_at || ') as job';
  for v_job in execute v_look_at
    using bulk.filter, bulk."until", bulk.priority, bulk.run_at, bulk.at, v_queue, v_key, v_place, v_look, bulk.state
  loop
    bulk.looked := bulk.looked + 1;
    v_key := v_job.key;
    v_place := v_job.place;
    v_bytes := v_bytes + coalesce(v_job.bytes, 0);
    if v_job.matches then
      bulk.matched := bulk.matched + 1;
      if bulk."limit" > 0 then
        v_rows[bulk.matched] := v_job.row;
        v_ids[bulk.matched] := v_job.id;
      elsif bulk.matched <= 10 then bulk.sample := bulk.sample || v_job.id;
      end if;
    end if;
    exit when bulk.matched = nullif(bulk."limit", 0) or v_bytes >= v_large;
  end loop;
  if bulk.looked = v_look or bulk.matched = bulk."limit" and bulk.matched > 0 or v_bytes >= v_large then
    bulk.next := concat_ws('.', bulk.state, v_key, v_place);
  end if;
  if cardinality(v_rows) = 0 then return; end if;

  -- The very rows that passed: one that has changed since lies elsewhere. By their ids as well, as each segment of `done` has rows at the
  -- same places.
  execute format('select array(select id from %I where ctid = any ($1) and id = any ($2) and queue = $3 and state = $4
    order by id for update skip locked)', v_table) using v_rows, v_ids, v_queue, bulk.state into v_ids;
  if cardinality(v_ids) = 0 then return; end if;
  bulk.changed := change_free(bulk.change, v_ids, bulk.priority, bulk.run_at, bulk.at);
end $$;

-- A test that most errors without this text in the JSON fail at once, since reading the JSON takes longer. A text that JSON may have
-- written in another way is left to the exact test.
create or replace function millpond.may_have(p_text text, p_value text) returns text
language sql immutable as $$
  select case when p_value ~ '^[ !#-.0-[\]-~]+$' then format('(strpos(error, %s) > 0 or strpos(error, ''\u00'') > 0)', p_text)
    else 'true' end
$$;
