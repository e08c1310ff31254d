-- schedules: declares, tells, pauses, removes and fires schedules. The client computes times; PostgreSQL compares them.
-- declare_schedules
-- In:  items: JSON list of declarations, as contract/operations.md has them; data of their jobs is a tagged text.
-- Out: a text per item, in their order: created, changed, same, kept, unknown.
-- list_schedules
-- In:  limit; after, a name; name, only this one. Null: all.
-- Out: JSON per schedule, as contract/operations.md has it, by name; data of its job is a tagged text.
-- pause_schedule, remove_schedule
-- In:  name; paused. Out: whether there is such a schedule.
-- fire
-- In:  firings: JSON list of name version expected next jobs; jobs as of push_jobs.
-- Out: JSON list with status and, if fired, jobs: the outcomes as texts, as of push_jobs.
-- Invariant: the next time moves on in the transaction that pushes the jobs of the time before. Rows are locked in the order of their
--      names, so that two calls cannot wait for each other.

-- How long a declaration counts, in ms.
create or replace function millpond.declared_for() returns bigint language sql immutable as $$ select 90000::bigint $$;

create or replace function millpond.schedule_record(p_schedule millpond.schedules, p_now bigint) returns json
language plpgsql stable as $$
begin
  return json_build_object('name', p_schedule.name, 'version', p_schedule.version, 'when', p_schedule."when", 'tz', p_schedule.tz,
    'missed', p_schedule.missed, 'jitter', p_schedule.jitter, 'from', p_schedule."from", 'until', p_schedule.until,
    'paused', p_schedule.paused, 'planned', p_schedule.planned, 'nextAt', p_schedule.next_at, 'changedAt', p_schedule.changed_at,
    'declared', p_schedule.seen_at + millpond.declared_for() > p_now, 'lastAt', p_schedule.last_at, 'job', p_schedule.job);
end $$;

-- What a library checks, for whoever may call these functions: a schedule of which no job can be made would keep the others of its call
-- from firing.
create or replace function millpond.check_schedule(p_missed text, p_jitter bigint, p_job json) returns void
language plpgsql as $$
declare
  v_data constant text := p_job ->> 'data';
begin
  if coalesce(p_job ->> 'queue', '') !~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$' then
    raise exception 'InvalidName: a queue name has 1 to 128 of A-Z a-z 0-9 _ - . : / and begins with a letter or digit'
      using errcode = '22023';
  elsif coalesce(p_missed, '') not in ('once', 'skip', 'all') then
    raise exception 'InvalidOption: missed is once, skip or all' using errcode = '22023';
  elsif coalesce(p_jitter, -1) not between 0 and 3155760000000 then
    raise exception 'InvalidOption: jitter is at least 0 ms' using errcode = '22023';
  elsif coalesce(octet_length(millpond.text_of(v_data)), octet_length(millpond.bytes_of(v_data)), 16777217) > 16777216 then
    raise exception 'InvalidOption: the data of a job is a tagged text, and has 16777216 bytes at most' using errcode = '22023';
  end if;
  perform millpond.check_job((p_job ->> 'priority')::smallint, 0, (p_job ->> 'attempts')::integer, (p_job ->> 'timeout')::bigint,
    p_job ->> 'key', p_job ->> 'group', coalesce((p_job ->> 'cost')::integer, 1), null);
end $$;

create or replace function millpond.declare_schedules(items json, now bigint default null) returns text[]
language plpgsql security definer set search_path = millpond, pg_temp
as $$
#variable_conflict use_column
declare
  v_now      bigint := time_of(declare_schedules.now);
  v_outcomes text[] := array_fill(null::text, array[json_array_length(declare_schedules.items)]);
  v_outcome  text;
  v_same     boolean;
  was        schedules%rowtype;
  v_count    bigint;
  item       record;
begin
  perform read_committed();
  -- Most calls tell again what has not changed: one statement then. Where another call comes between, the loop below finds what it did.
  with same as materialized (
    select given.name, given.version from json_to_recordset(declare_schedules.items) as given(name text, version text, again boolean)
    join schedules as each on each.name = given.name and each.version = given.version
    where given.again
  ), held as materialized (
    select each.name from schedules as each join same on same.name = each.name and same.version = each.version
    where (select count(*) from same) = json_array_length(declare_schedules.items) order by each.name collate "C" for update of each
  )
  update schedules as each set seen_at = v_now from held where each.name = held.name;
  get diagnostics v_count = row_count;
  if v_count = json_array_length(declare_schedules.items) then return array_fill('same'::text, array[v_count::integer]); end if;
  for item in
    select given.* from rows from (
      json_to_recordset(declare_schedules.items) as (name text, version text, "when" text, tz text, missed text, jitter bigint,
        "from" bigint, until bigint, paused boolean, again boolean, job json)
    ) with ordinality as given(name, version, line, tz, missed, jitter, starts, ends, paused, again, job, nth)
    order by name collate "C", nth
  loop
    perform check_schedule(item.missed, item.jitter, item.job);
    loop
      v_outcome := 'unknown';
      if item.again is not true then
        insert into schedules (name, version, "when", tz, missed, jitter, "from", until, paused, next_at, changed_at, seen_at, job)
        values (item.name, item.version, item.line, item.tz, item.missed, item.jitter, item.starts, item.ends, item.paused, v_now, v_now,
          v_now, item.job)
        on conflict (name) do nothing;
        if found then v_outcome := 'created'; end if;
      end if;
      exit when v_outcome = 'created';
      select * into was from schedules where name = item.name for update;
      if found then
        v_outcome := case when was.version = item.version then 'same'
          when item.version = any (was.former) and was.seen_at + declared_for() > v_now then 'kept' else 'changed' end;
      end if;
      -- Else it was removed meanwhile.
      exit when found or item.again is true;
    end loop;
    if v_outcome = 'same' then
      update schedules set seen_at = v_now where name = item.name;
    elsif v_outcome = 'changed' then
      v_same := (was."when", was.tz) = (item.line, item.tz) and was."from" is not distinct from item.starts
        and was.until is not distinct from item.ends
        -- A time that is due already fires first.
        or was.planned and coalesce(was.next_at <= v_now, false);
      update schedules set
        former = (array[was.version] || array_remove(was.former, item.version))[1:16], version = item.version, "when" = item.line,
        tz = item.tz, missed = item.missed, jitter = item.jitter, "from" = item.starts, until = item.ends, job = item.job,
        planned = was.planned and v_same, next_at = case when v_same then was.next_at else v_now end,
        changed_at = v_now, seen_at = v_now
      where name = item.name;
    end if;
    v_outcomes[item.nth] := v_outcome;
  end loop;
  return v_outcomes;
end $$;

create or replace function millpond.list_schedules(
  "limit" integer, after text default null, name text default null, now bigint default null
) returns setof json
language plpgsql security definer set search_path = millpond, pg_temp
as $$
begin
  return query
    select schedule_record(each, time_of(list_schedules.now)) from schedules as each
    where (list_schedules.after is null or each.name > list_schedules.after)
      and (list_schedules.name is null or each.name = list_schedules.name)
    order by each.name limit list_schedules."limit";
end $$;

create or replace function millpond.pause_schedule(name text, paused boolean, now bigint default null) returns boolean
language plpgsql security definer set search_path = millpond, pg_temp
as $$
begin
  update schedules as each set
    paused = pause_schedule.paused,
    planned = each.planned and (pause_schedule.paused or not each.paused),
    next_at = case when each.paused and not pause_schedule.paused then time_of(pause_schedule.now) else each.next_at end
  where each.name = pause_schedule.name;
  return found;
end $$;

create or replace function millpond.remove_schedule(name text) returns boolean
language plpgsql security definer set search_path = millpond, pg_temp
as $$
begin
  delete from schedules as each where each.name = remove_schedule.name;
  return found;
end $$;

create or replace function millpond.fire(firings json, now bigint default null) returns json
language plpgsql security definer set search_path = millpond, pg_temp
as $$
declare
  v_outcomes json[] := array_fill(null::json, array[json_array_length(fire.firings)]);
  v_pushed   text[];
  item       record;
begin
  perform read_committed();
  perform enter_rooms(array(
    select distinct given.jobs -> 0 ->> 'queue' from json_to_recordset(fire.firings) as given(jobs json)));
  -- Calls take the schedules in one order. Whose jobs get the last room goes by the order of the call.
  perform from schedules as each where each.name in (select given.name from json_to_recordset(fire.firings) as given(name text))
  order by each.name for no key update;
  for item in
    select given.* from rows from (
      json_to_recordset(fire.firings) as (name text, version text, expected bigint, next bigint, jobs json)
    ) with ordinality as given(name, version, expected, next, jobs, nth) order by nth
  loop
    begin
      update schedules as each set
        planned = true, next_at = item.next,
        last_at = case when json_array_length(item.jobs) > 0 then time_of(fire.now) else each.last_at end
      where each.name = item.name and each.version = item.version and each.next_at = item.expected and not each.paused;
      if not found then
        v_outcomes[item.nth] := json_build_object('status', 'stale');
        continue;
      end if;
      v_pushed := '{}';
      if json_array_length(item.jobs) > 0 then
        -- Also for jobs that will not be stored, as in every store.
        if (select room_in(id, capacity, false) < json_array_length(item.jobs) from queues
          where queues.name = item.jobs -> 0 ->> 'queue' and capacity is not null)
        then raise sqlstate 'MP005';
        end if;
        v_pushed := push_jobs(item.jobs, false, fire.now);
        -- Jobs that were requeued or restored at this moment may have taken the room.
        if exists (select from unnest(v_pushed) as told where told like 'full %') then raise sqlstate 'MP005'; end if;
      end if;
      v_outcomes[item.nth] := json_build_object('status', 'fired', 'jobs', v_pushed);
    exception when sqlstate 'MP005' then
      v_outcomes[item.nth] := json_build_object('status', 'full');
    end;
  end loop;
  return array_to_json(v_outcomes);
end $$;

-- For the sweep: the schedules that are due, null if none is, and when the next one fires that is not.
create or replace function millpond.due_schedules(p_now bigint) returns json
language plpgsql stable as $$
begin
  return (
    select json_build_object('now', p_now, 'due', json_agg(millpond.schedule_record(due, p_now) order by due.next_at, due.name))
    from (
      select * from millpond.schedules where not paused and next_at is not null and next_at <= p_now order by next_at, name limit 100
    ) as due having count(*) > 0);
end $$;

create or replace function millpond.next_schedule(p_now bigint) returns bigint
language plpgsql stable as $$
begin
  return (select min(next_at) from millpond.schedules where not paused and next_at is not null and next_at > p_now);
end $$;

-- schedule: declares a schedule from SQL, in the caller's transaction. The process that sweeps next plans it, or reports a line that it
-- cannot read. data: text, json or jsonb. Durations are ms.
-- Out: the outcome, as of declare_schedules.
create or replace function millpond.schedule(
  name text, "when" text, queue text, data text, tz text default 'UTC', missed text default 'once', jitter bigint default 0,
  "from" timestamptz default null, until timestamptz default null, paused boolean default false, priority integer default 4,
  key text default null, "group" text default null, cost integer default 1, attempts integer default null, timeout bigint default null
) returns text
language plpgsql security definer set search_path = millpond, pg_temp
as $$
#variable_conflict use_variable
declare
  v_line text := btrim("when");
  v_from bigint := floor(extract(epoch from "from") * 1000);
  v_until bigint := floor(extract(epoch from until) * 1000);
  v_data text := data::json::text;
  v_declared text;
begin
  if name is null or name !~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$' or queue is null or queue !~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$' then
    raise exception 'InvalidName: a schedule or queue name has 1 to 128 of A-Z a-z 0-9 _ - . : / and begins with a letter or digit'
      using errcode = '22023';
  elsif data is null then
    raise exception 'InvalidOption: data is null; give ''null'' to mean the JSON value' using errcode = '22023';
  elsif octet_length(v_data) > 65536 then
    raise exception 'PayloadTooLarge: the data of a schedule may have 65536 bytes' using errcode = 'MP002';
  elsif coalesce(v_line, '') !~ '^([^ ]+ +){4,5}[^ ]+$|^@[a-z]+$|^every +[0-9]+([.][0-9]+)?(ms|s|m|h|d)$' then
    raise exception 'InvalidOption: a schedule is a cron line of 5 or 6 fields, a name such as @daily, or ''every 90s'''
      using errcode = '22023';
  elsif v_line like 'every%' and interval_of(v_line) < 1000 then
    raise exception 'InvalidOption: an interval is at least 1 s' using errcode = '22023';
  elsif coalesce(missed, '') not in ('once', 'skip', 'all') then
    raise exception 'InvalidOption: missed is once, skip or all' using errcode = '22023';
  elsif coalesce(jitter, -1) not between 0 and 3155760000000 then
    raise exception 'InvalidOption: jitter is at least 0 ms' using errcode = '22023';
  elsif v_from > v_until then
    raise exception 'InvalidOption: from must not be after until' using errcode = '22023';
  elsif timeout not between 1 and 2073600000 then
    raise exception 'InvalidOption: timeout is 1 to 2073600000 ms, 24 days' using errcode = '22023';
  elsif priority is null or priority not between 0 and 9 or cost is null or cost not between 1 and 10000
    or attempts not between 1 and 1000000 then
    raise exception 'InvalidOption: priority is 0 to 9, cost 1 to 10000, attempts 1 to 1000000' using errcode = '22023';
  elsif octet_length(key) not between 1 and 255 or octet_length("group") not between 1 and 255 then
    raise exception 'InvalidName: a key or group has 1 to 255 bytes' using errcode = '22023';
  end if;
  begin
    if coalesce(tz, '') !~ '^[A-Za-z]+(/[A-Za-z0-9_+-]+)*$' then raise exception using errcode = '22023'; end if;
    perform clock_timestamp() at time zone tz;
  exception when invalid_parameter_value then
    raise exception 'InvalidOption: tz must be an IANA time zone such as Europe/Paris' using errcode = '22023';
  end;
  perform check_data(data);
  -- As JSON.stringify writes it: vectors/schedules.json, versions.
  v_declared := '[' || concat_ws(',', to_json(v_line), to_json(tz), to_json(missed), jitter, coalesce(v_from::text, 'null'),
    coalesce(v_until::text, 'null'), to_json(queue), priority, coalesce(to_json(key)::text, 'null'),
    coalesce(to_json("group")::text, 'null'), cost, coalesce(attempts::text, 'null'), coalesce(timeout::text, 'null'), '"json"') || ']';
  return (declare_schedules(json_build_array(json_build_object(
    'name', name, 'version', left(encode(sha256(convert_to(v_declared || v_data, 'UTF8')), 'hex'), 32), 'when', v_line, 'tz', tz,
    'missed', missed, 'jitter', jitter, 'from', v_from, 'until', v_until, 'paused', coalesce(paused, false), 'again', false,
    'job', json_build_object('queue', queue, 'priority', priority, 'key', key, 'group', "group", 'cost', cost, 'attempts', attempts,
      'timeout', timeout, 'data', 'j' || v_data)))))[1];
end $$;

-- Of `every 90s`, in ms.
create or replace function millpond.interval_of(line text) returns numeric
language sql immutable as $$
  select substring(line from '[0-9.]+')::numeric
    * (case substring(line from '[a-z]+$') when 'ms' then 1 when 's' then 1000 when 'm' then 60000 when 'h' then 3600000 else 86400000 end)
$$;

create or replace function millpond.schedule(
  name text, "when" text, queue text, data json, tz text default 'UTC', missed text default 'once', jitter bigint default 0,
  "from" timestamptz default null, until timestamptz default null, paused boolean default false, priority integer default 4,
  key text default null, "group" text default null, cost integer default 1, attempts integer default null, timeout bigint default null
) returns text
language sql security definer set search_path = millpond, pg_temp
as $$
  select millpond.schedule(name, "when", queue, data::text, tz, missed, jitter, "from", until, paused, priority, key, "group", cost,
    attempts, timeout)
$$;

create or replace function millpond.schedule(
  name text, "when" text, queue text, data jsonb, tz text default 'UTC', missed text default 'once', jitter bigint default 0,
  "from" timestamptz default null, until timestamptz default null, paused boolean default false, priority integer default 4,
  key text default null, "group" text default null, cost integer default 1, attempts integer default null, timeout bigint default null
) returns text
language sql security definer set search_path = millpond, pg_temp
as $$
  select millpond.schedule(name, "when", queue, data::text, tz, missed, jitter, "from", until, paused, priority, key, "group", cost,
    attempts, timeout)
$$;
