-- push by hand: `select millpond.push('emails', '{"to": "a@example.org"}')`, in the caller's transaction.
-- In:  named or by place: queue, data, then the options of a push.
-- Out: the job's id; null: the queue is full.
-- Invariant: what is refused raises an error whose text begins with its code.

-- A UUIDv7 (RFC 9562): 48 bits of time, the rest random but for version and variant.
create or replace function millpond.new_id() returns uuid
language sql volatile as $$
  select encode(
    set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) placing substring(int8send(millpond.time_of(null)) from 3) from 1 for 6), 52, 1),
      53, 1),
    'hex')::uuid
$$;

-- What people push is checked as in every library. JSON may escape half of a surrogate pair, which strict readers refuse with all that
-- is beside it.
create or replace function millpond.check_data(p_data text) returns void
language plpgsql immutable as $$
begin
  if octet_length(p_data) > 16777216 then
    raise exception 'PayloadTooLarge: data has more than 16777216 bytes; store it elsewhere and push a reference' using errcode = 'MP002';
  elsif p_data ~ '\\u[dD][89a-fA-F]' and
    -- Without escaped backslashes, then without whole pairs, any escape that is left is half of one.
    regexp_replace(replace(p_data, '\\', ''), '\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}', ' ', 'g') ~ '\\u[dD][89a-fA-F]'
  then
    raise exception 'PayloadNotEncodable: data holds half of a surrogate pair, such as a cut emoji' using errcode = 'MP003';
  end if;
end $$;

-- One job, in the caller's transaction: select millpond.push('emails', '{"to":"a@example.org"}'). delay and timeout in ms.
-- With the key of a live job that job's id comes back, and nothing is stored. data may be text, json or jsonb.
-- `after`: it waits until these jobs are done; `on_dead`: else it is cancelled, or may `run`; `part_of`: see contract/graphs.md.
create or replace function millpond.push(
  queue text, data text, priority integer default 4, delay bigint default 0, run_at timestamptz default null, key text default null,
  "group" text default null, attempts integer default null, timeout bigint default null, trace text default null,
  id uuid default null, cost integer default 1, after uuid[] default null, on_dead text default 'cancel', part_of uuid default null
) returns uuid
language plpgsql security definer set search_path = millpond, pg_temp
as $$
#variable_conflict use_variable
declare
  v_outcome text;
begin
  if queue is null or queue !~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$' then
    raise exception 'InvalidName: a queue name has 1 to 128 of A-Z a-z 0-9 _ - . : / and begins with a letter or digit'
      using errcode = '22023';
  elsif data is null then
    raise exception 'InvalidOption: data is null; push ''null'' to mean the JSON value' using errcode = '22023';
  elsif coalesce(delay, -1) not between 0 and 8640000000000000 then
    raise exception 'InvalidOption: delay is at least 0 ms' using errcode = '22023';
  elsif on_dead is null or on_dead not in ('cancel', 'run') then
    raise exception 'InvalidOption: on_dead is cancel or run' using errcode = '22023';
  elsif cardinality(after) > 10000 then
    raise exception 'InvalidOption: after has 10000 ids at most' using errcode = '22023';
  elsif timeout not between 1 and 2073600000 then
    raise exception 'InvalidOption: timeout is 1 to 2073600000 ms, 24 days' using errcode = '22023';
  end if;
  perform check_data(data);
  v_outcome := (push_jobs(json_build_array(json_build_object(
    'id', coalesce(id, new_id()), 'queue', queue, 'priority', priority, 'delay', delay,
    'runAt', floor(extract(epoch from run_at) * 1000), 'key', key, 'group', "group", 'attempts', attempts, 'timeout', timeout,
    'cost', cost, 'trace', trace, 'data', 'j' || data::json::text, 'fresh', id is null, 'after', after, 'onDead', on_dead,
    'partOf', part_of)), false))[1];
  if v_outcome like 'orphan %' then
    raise exception 'ParentUnknown: there is no job %, or it has ended', split_part(v_outcome, ' ', 3) using errcode = 'MP005';
  elsif v_outcome like 'held %' then
    raise exception 'KeyHeld: job % has the key, and does not wait for the jobs of after', split_part(v_outcome, ' ', 2)
      using errcode = 'MP007';
  end if;
  return case when v_outcome not like 'full %' then split_part(v_outcome, ' ', 2)::uuid end;
end $$;

create or replace function millpond.push(
  queue text, data json, priority integer default 4, delay bigint default 0, run_at timestamptz default null, key text default null,
  "group" text default null, attempts integer default null, timeout bigint default null, trace text default null,
  id uuid default null, cost integer default 1, after uuid[] default null, on_dead text default 'cancel', part_of uuid default null
) returns uuid
language sql security definer set search_path = millpond, pg_temp
as $$
  select millpond.push(
    queue, data::text, priority, delay, run_at, key, "group", attempts, timeout, trace, id, cost, after, on_dead, part_of)
$$;

create or replace function millpond.push(
  queue text, data jsonb, priority integer default 4, delay bigint default 0, run_at timestamptz default null, key text default null,
  "group" text default null, attempts integer default null, timeout bigint default null, trace text default null,
  id uuid default null, cost integer default 1, after uuid[] default null, on_dead text default 'cancel', part_of uuid default null
) returns uuid
language sql security definer set search_path = millpond, pg_temp
as $$
  select millpond.push(
    queue, data::text, priority, delay, run_at, key, "group", attempts, timeout, trace, id, cost, after, on_dead, part_of)
$$;
