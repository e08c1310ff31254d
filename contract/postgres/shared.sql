-- shared: what the operations have in common. Installed before them.
-- Edition: 1
-- The edition of all functions: each release that changes any of them raises it. The higher one stays: README.md, "Editions".
--
-- Each function runs with its owner's rights, on its own search path, and with plans that use indexes whatever the statistics say:
-- a table that was empty when last analyzed may hold millions of rows now, live or dead. `queue + 0` is for that, too: it keeps the planner
-- off the index that begins with the queue where the id's is meant. So is `id between held.id and held.id` in joins with a list of ids: for
-- an equality the planner may walk the whole index in its order instead, and step over each dead entry of a table that it takes for empty.
-- Where a list is looked up in a table with other indexes, or by two columns, each look-up is a `lateral` with `offset 0` or `for update`:
-- the planner cannot turn that one round, nor look at the table by a part of the columns.

-- All jobs, whatever table they are in. Look-ups by id use this view: with a join of the queue's name, an index that begins with the queue
-- would do for them as well.
create or replace view millpond.all_jobs as
select j.queue, j.state,
  j.id, j.place, j.priority, j.fence, j.attempt, j.attempts, j.pushed_at, j.due_at, j.started_at, null::bigint as lease_until,
  null::bigint as finished_at, j.worker, j.timeout, j.key, j."group", j.cost, j.trace, j.encoding, j.data, j.data_bytes,
  j.progress_encoding, j.progress, j.progress_bytes,
  null::text as result_encoding, null::text as result, null::bytea as result_bytes, j.error, j.log, j.remember, j.follow_due
from millpond.waiting j
union all
select j.queue, j.state,
  j.id, j.place, j.priority, j.fence, j.attempt, j.attempts, j.pushed_at, j.due_at, j.started_at, j.lease_until,
  null, j.worker, j.timeout, j.key, j."group", j.cost, j.trace, j.encoding, j.data, j.data_bytes,
  j.progress_encoding, j.progress, j.progress_bytes, null, null, null, j.error, j.log, j.remember, j.follow_due
from millpond.running j
union all
select j.queue, j.state,
  j.id, j.place, j.priority, j.fence, j.attempt, j.attempts, j.pushed_at, j.due_at, j.started_at, null,
  j.finished_at, j.worker, j.timeout, j.key, j."group", j.cost, j.trace, j.encoding, j.data, j.data_bytes,
  j.progress_encoding, j.progress, j.progress_bytes, j.result_encoding, j.result, j.result_bytes, j.error, j.log, j.remember, j.follow_due
from millpond.done j
union all
select j.queue, j.state,
  j.id, j.place, j.priority, j.fence, j.attempt, j.attempts, j.pushed_at, j.due_at, j.started_at, null,
  j.finished_at, j.worker, j.timeout, j.key, j."group", j.cost, j.trace, j.encoding, j.data, j.data_bytes,
  j.progress_encoding, j.progress, j.progress_bytes, null, null, null, j.error, j.log, j.remember, j.follow_due
from millpond.retired j;

-- The same for people.
create or replace view millpond.jobs as
select q.name as queue, j.state,
  j.id, j.place, j.priority, j.fence, j.attempt, j.attempts, j.pushed_at, j.due_at, j.started_at, j.lease_until,
  j.finished_at, j.worker, j.timeout, j.key, j."group", j.cost, j.trace, j.encoding, j.data, j.data_bytes,
  j.progress_encoding, j.progress, j.progress_bytes, j.result_encoding, j.result, j.result_bytes, j.error, j.log, j.remember, j.follow_due
from millpond.all_jobs j join millpond.queues q on q.id = j.queue;

create or replace function millpond.states() returns text[]
language sql immutable parallel safe as $$
  select array['blocked', 'scheduled', 'waiting', 'running', 'done', 'dead', 'cancelled']
$$;

-- For people, on the columns data, progress, result and error of the view: field(data, 'to'), field(data, 'address', 'city'). Null where
-- the text is null, as data that is no JSON is, or PostgreSQL cannot show it: JSON may hold \u0000, and the operators fail for all rows
-- then.
create or replace function millpond.field(body text, variadic path text[]) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
  return body::json #>> path;
exception when data_exception then
  return null;
end $$;

-- The store's clock, in whole milliseconds; tests give their own.
create or replace function millpond.time_of(p_now bigint) returns bigint
language sql volatile as $$
  select coalesce(p_now, floor(extract(epoch from clock_timestamp()) * 1000)::bigint)
$$;

-- The marks of sweeps (`swept_*`) do not pass the times that unfinished transactions hold. Takes the time, and holds it until the
-- transaction ends: all jobs that it stores are due later (`p_what`: due), or all leases that it gives end later (leases). An advisory
-- lock on 16 ms, held from before the time is taken. An extension needs none: until it is committed, sweeps see the lease that was,
-- which ends earlier.
create or replace function millpond.hold_time(p_what text, p_now bigint) returns bigint
language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(hashtext('millpond ' || p_what), (millpond.time_of(p_now) >> 4 & 2147483647)::integer);
  return millpond.time_of(p_now);
end $$;

-- The earliest times that are held, at most `p_now`. Statements after this one see all that had ended by then.
create or replace function millpond.held_times(p_now bigint, out due bigint, out leases bigint)
language plpgsql as $$
begin
  select p_now - greatest(max(age) filter (where what = hashtext('millpond due')::oid), 0),
    p_now - greatest(max(age) filter (where what = hashtext('millpond leases')::oid), 0)
  into due, leases from (
    -- From -2^30 on: some began after `p_now` was taken.
    select classid as what, ((((p_now >> 4) - objid::bigint + 1073741824 & 2147483647) - 1073741824) << 4) + (p_now & 15) as age
      from pg_locks
    where locktype = 'advisory' and objsubid = 2 and database = (select oid from pg_database where datname = current_database())
  ) as held;
end $$;

-- The upper bits of a place, for the locks of `enter`. They begin anew after 2^43 places.
create or replace function millpond.block_of(p_place bigint) returns integer
language sql immutable parallel safe as $$
  select (p_place >> 12 & 2147483647)::integer
$$;

-- Most operations need a new view of the data for each of their statements. In REPEATABLE READ and SERIALIZABLE a statement does not see
-- what was committed since the transaction began: marks would pass jobs that wait.
create or replace function millpond.read_committed() returns void
language plpgsql stable as $$
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception using
      message = 'NotSupported: this operation works at the isolation level READ COMMITTED only; '
        || 'set transaction isolation level read committed before it',
      errcode = 'MP001';
  end if;
end $$;

-- The queue's id; it comes into being when it is first named. To be called, as any look for a queue to store something in, after `enter`.
create or replace function millpond.queue_of(p_queue text) returns integer
language plpgsql as $$
declare
  v_id integer;
begin
  select id into v_id from millpond.queues where name = p_queue;
  if not found then
    insert into millpond.queues (name) values (p_queue) on conflict (name) do nothing returning id into v_id;
    if v_id is null then
      select id into v_id from millpond.queues where name = p_queue;
    else
      insert into millpond.lines (queue, line) values (v_id, 0), (v_id, 1);
    end if;
  end if;
  if not millpond.sees_all() then perform millpond.keep_queue(v_id); end if;
  return v_id;
end $$;

-- For a transaction that is not `read committed`: it may see a queue that has been removed since it began. Then it fails, and is to be
-- repeated.
create or replace function millpond.keep_queue(p_queue integer) returns void
language plpgsql as $$
begin
  perform from millpond.queues where id = p_queue for key share;
end $$;

-- Above the fences of all jobs that were removed. A job whose id may have been there begins here. To be read after its row was stored:
-- only then it is known what removed the row before it.
create or replace function millpond.removed_fence() returns bigint
language sql volatile as $$
  select coalesce(max(removed), 0) from millpond.meta
$$;

-- A transaction is under way that may make a job of the queue startable.
create or replace function millpond.stir(p_queue text) returns void
language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(hashtext('millpond work'), hashtext(p_queue));
end $$;

-- Rings for who waits for it: work, room or finished. `own`: this transaction ends with this call, so the sleepers can be struck off;
-- otherwise others would wait for its end, or think that the bell has rung.
-- For `work` it is told from here to the end of the transaction that something is under way: a claim that notes its listener after the
-- look below sees that, and claims once more. So it is called after the change, before the commit.
create or replace function millpond.ring(p_kind text, p_queue text, p_own boolean default true) returns void
language plpgsql as $$
begin
  if p_kind = 'work' then perform millpond.stir(p_queue); end if;
  if exists (select from millpond.sleepers where queue = p_queue and kind = p_kind) then
    perform pg_notify('millpond', p_kind || ':' || p_queue);
    if p_own then
      delete from millpond.sleepers
      where ctid = any (array(select ctid from millpond.sleepers where queue = p_queue and kind = p_kind for update skip locked));
    end if;
  end if;
end $$;

-- The same for several bells, such as `work:emails`; of a running job also `cancelled`. To be called last, as a claim may wait to note
-- its listener.
create or replace function millpond.ring_all(p_bells text[]) returns void
language plpgsql as $$
declare
  v_bell text;
begin
  foreach v_bell in array array(select distinct unnest(p_bells) order by 1) loop
    if v_bell like 'cancelled:%' then perform pg_notify('millpond', v_bell);
    else perform millpond.ring(split_part(v_bell, ':', 1), substr(v_bell, strpos(v_bell, ':') + 1));
    end if;
  end loop;
end $$;

-- An encoded body travels as one text: a tag for the encoding, then the JSON, or the bytes in base64. Null: nothing.
create or replace function millpond.encoding_of(p_body text) returns text
language sql immutable parallel safe as $$
  select case left(p_body, 1) when 'j' then 'json' when 'm' then 'msgpack' when 'b' then 'bytes' end
$$;
create or replace function millpond.text_of(p_body text) returns text
language sql immutable parallel safe as $$
  select case when left(p_body, 1) = 'j' then substr(p_body, 2) end
$$;
create or replace function millpond.bytes_of(p_body text) returns bytea
language sql immutable parallel safe as $$
  select case when left(p_body, 1) in ('m', 'b') then decode(substr(p_body, 2), 'base64') end
$$;
create or replace function millpond.body_of(p_encoding text, p_text text, p_bytes bytea) returns text
language sql immutable parallel safe as $$
  select case p_encoding when 'json' then 'j' || p_text when 'msgpack' then 'm' || encode(p_bytes, 'base64')
    when 'bytes' then 'b' || encode(p_bytes, 'base64') end
$$;

-- A job's log with further lines, which are separated by line feeds; null: none. Lines that are there already are left out; of the others
-- the last 100 are kept, and of those as many as have 65536 bytes.
create or replace function millpond.log_with(p_log text, p_lines text) returns text
language sql immutable parallel safe as $$
  select string_agg(line, E'\n' order by nth) from (
    select line, nth, count(*) over newest as lines, sum(octet_length(line) + 1) over newest as bytes
    from (
      select line, min(nth) as nth
      from unnest(string_to_array(concat_ws(E'\n', p_log, p_lines), E'\n')) with ordinality as each(line, nth)
      group by line
    ) as own
    window newest as (order by nth desc)
  ) as sized
  where lines <= 100 and bytes <= 65536
$$;

-- A running job's row, already taken out of its table, is waiting again, scheduled or blocked. It keeps its place. Causes are
-- those of `moves`.
create or replace function millpond.put_back(p_job millpond.running, p_state text, p_cause text) returns void
language plpgsql as $$
declare
  v_frees boolean := p_job.line = -1;
begin
  p_job.line := case when p_state = 'waiting' then millpond.line_back(p_job.queue) else 0 end;
  if v_frees or p_job.line = -1 then
    insert into millpond.arrivals (queue, groups) values (p_job.queue, array[coalesce(p_job."group", '')]);
  end if;
  p_job.state := p_state;
  p_job.lease_until := null;
  insert into millpond.waiting select p_job.*;
  insert into millpond.moves (queue, segment, was, becomes, cause, count) values (p_job.queue, -1, 'running', p_state, p_cause, 1);
end $$;

-- A live job's row was taken out of its table for good: gives up its key, tells its group, and counts it.
create or replace function millpond.take_leave(p_job millpond.running, p_becomes text, p_cause text, p_now bigint) returns void
language plpgsql as $$
begin
  if p_job.key is not null then
    delete from millpond.keys where queue = p_job.queue and key = p_job.key and id = p_job.id and memory is null and follower is null;
    if not found then perform millpond.leave_key(p_job.queue, p_job.key, p_job.id, p_becomes = 'dead', p_now); end if;
  end if;
  insert into millpond.moves (queue, segment, was, becomes, cause, count) values (p_job.queue, -1, p_job.state, p_becomes, p_cause, 1);
  if p_job.line = -1 then
    insert into millpond.arrivals (queue, groups) values (p_job.queue, array[coalesce(p_job."group", '')]);
  end if;
end $$;

-- A live job's row, already taken out of its table, is dead or cancelled; with a keeping time of 0 it is gone.
create or replace function millpond.retire(p_job millpond.running, p_state text, p_cause text, p_now bigint, p_keep bigint) returns void
language plpgsql as $$
begin
  perform millpond.take_leave(p_job, p_state, p_cause, p_now);
  if p_job.follow_due is not null then
    p_job.due_at := p_job.follow_due;
    p_job.follow_due := null;
  end if;
  if p_keep > 0 then
    p_job.state := p_state;
    insert into millpond.retired select p_job.*, p_now;
  else
    insert into millpond.moves (queue, segment, was, becomes, cause, count) values (p_job.queue, -1, p_state, 'gone', 'expire', 1);
  end if;
end $$;

-- How many jobs of a queue are in each state, by `moves` and `totals`.
create or replace function millpond.counts_of(p_queue integer, out state text, out count bigint) returns setof record
language sql stable as $$
  select each.state, sum(each.count)::bigint from (
    select becomes as state, t.count from millpond.totals as t where queue = p_queue
    union all
    select was, -t.count from millpond.totals as t where queue = p_queue
    union all
    select becomes, m.count from millpond.moves as m where queue = p_queue
    union all
    select was, -m.count from millpond.moves as m where queue = p_queue
  ) as each where each.state not in ('new', 'gone') group by each.state
$$;

-- Adds up the moves of a queue, null: of all, from this id on. Returns the greatest id, null if there was none.
create or replace function millpond.add_up(p_queue integer, p_from bigint default 0) returns bigint
language plpgsql as $$
declare
  v_ctids tid[];
  v_last  bigint;
begin
  if p_queue is null then
    v_ctids := array(select ctid from millpond.moves where id >= p_from order by id limit 100000 for update skip locked);
  else
    v_ctids := array(select ctid from millpond.moves where queue = p_queue limit 100000 for update skip locked);
  end if;
  with gone as (
    delete from millpond.moves where ctid = any (v_ctids) returning *
  ), added as (
    insert into millpond.totals as known (queue, segment, was, becomes, cause, count)
    select queue, segment, was, becomes, cause, sum(gone.count) from gone group by queue, segment, was, becomes, cause
    -- In one order for all, so that two at once cannot wait for each other.
    order by queue, segment, was, becomes, cause
    on conflict (queue, segment, was, becomes, cause) do update set count = known.count + excluded.count
  )
  select max(id) into v_last from gone;
  return v_last;
end $$;
