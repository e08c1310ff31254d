-- shared: what the operations have in common. Installed before them.
-- Each function runs with its owner's rights, on its own search path, and with plans that use indexes whatever the statistics say:
-- a table that was empty when last analyzed may hold millions of rows now, live or dead. `queue + 0` is for that, too: it keeps the planner
-- off the index that begins with the queue where the id's is meant. So is `id between held.id and held.id` in joins with a list of ids: for
-- an equality the planner may walk the whole index in its order instead, and step over each dead entry of a table that it takes for empty.

create or replace view millpond.jobs as
select q.name as queue, case when j.scheduled then 'scheduled' else 'waiting' end as state,
  j.id, j.seq, j.priority, j.fence, j.attempt, j.attempts, j.pushed_at, j.due_at, j.started_at, null::bigint as lease_until,
  null::bigint as finished_at, j.worker, j.timeout, j.key, j."group", j.trace, j.encoding, j.data, j.data_bytes,
  j.progress_encoding, j.progress, j.progress_bytes,
  null::text as result_encoding, null::text as result, null::bytea as result_bytes, j.error
from millpond.waiting j join millpond.queues q on q.id = j.queue
union all
select q.name, 'running',
  j.id, j.seq, j.priority, j.fence, j.attempt, j.attempts, j.pushed_at, j.due_at, j.started_at, j.lease_until,
  null, j.worker, j.timeout, j.key, j."group", j.trace, j.encoding, j.data, j.data_bytes,
  j.progress_encoding, j.progress, j.progress_bytes, null, null, null, j.error
from millpond.running j join millpond.queues q on q.id = j.queue
union all
select q.name, 'done',
  j.id, j.seq, j.priority, j.fence, j.attempt, j.attempts, j.pushed_at, j.due_at, j.started_at, null,
  j.finished_at, j.worker, j.timeout, j.key, j."group", j.trace, j.encoding, j.data, j.data_bytes,
  j.progress_encoding, j.progress, j.progress_bytes, j.result_encoding, j.result, j.result_bytes, j.error
from millpond.done j join millpond.queues q on q.id = j.queue
union all
select q.name, j.state,
  j.id, j.seq, j.priority, j.fence, j.attempt, j.attempts, j.pushed_at, j.due_at, j.started_at, null,
  j.finished_at, j.worker, j.timeout, j.key, j."group", j.trace, j.encoding, j.data, j.data_bytes,
  j.progress_encoding, j.progress, j.progress_bytes, null, null, null, j.error
from millpond.retired j join millpond.queues q on q.id = j.queue;

-- The store's clock, in whole milliseconds; tests give their own.
create or replace function millpond.time_of(p_now bigint) returns bigint
language sql volatile as $$
  select coalesce(p_now, floor(extract(epoch from clock_timestamp()) * 1000)::bigint)
$$;

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
      insert into millpond.marks (queue) values (v_id);
    end if;
  end if;
  if current_setting('transaction_isolation') <> 'read committed' then perform millpond.keep_queue(v_id); end if;
  return v_id;
end $$;

-- For a transaction that is not `read committed`: it may see a queue that has been removed since it began. Then it fails, and is to be repeated.
create or replace function millpond.keep_queue(p_queue integer) returns void
language plpgsql as $$
begin
  perform from millpond.queues where id = p_queue for key share;
end $$;

-- Rings for whoever found the queue empty. `own`: this transaction ends with this call, so the sleepers can be struck off;
-- otherwise others would wait for its end, or think that the bell has rung.
create or replace function millpond.ring_work(p_queue text, p_own boolean) returns void
language plpgsql as $$
begin
  if exists (select from millpond.sleepers where queue = p_queue) then
    perform pg_notify('millpond', 'work:' || p_queue);
    if p_own then
      delete from millpond.sleepers
      where ctid = any (array(select ctid from millpond.sleepers where queue = p_queue for update skip locked));
    end if;
  end if;
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

-- A running job's row, already taken out of its table, waits again, or is scheduled. It keeps its place, in lane 1.
create or replace function millpond.put_back(p_job millpond.running, p_scheduled boolean) returns void
language plpgsql as $$
begin
  insert into millpond.waiting (seq, pushed_at, due_at, timeout, started_at, id, queue, fence, attempt, attempts, priority, lane,
    scheduled, key, "group", trace, worker, encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error)
  select (p_job).seq, (p_job).pushed_at, (p_job).due_at, (p_job).timeout, (p_job).started_at, (p_job).id, (p_job).queue, (p_job).fence,
    (p_job).attempt, (p_job).attempts, (p_job).priority, 1, p_scheduled, (p_job).key, (p_job)."group", (p_job).trace, (p_job).worker,
    (p_job).encoding, (p_job).data, (p_job).data_bytes, (p_job).progress_encoding, (p_job).progress, (p_job).progress_bytes, (p_job).error;
  if p_scheduled then insert into millpond.counts (queue, running, scheduled) values ((p_job).queue, -1, 1);
  else insert into millpond.counts (queue, running, waiting, ready) values ((p_job).queue, -1, 1, 1);
  end if;
end $$;

-- A live job's row, already taken out of its table, is dead or cancelled; with a keeping time of 0 it is gone.
create or replace function millpond.retire(p_job millpond.running, p_state text, p_now bigint, p_keep bigint) returns void
language plpgsql as $$
declare
  v_kept bigint := case when p_keep > 0 then 1 else 0 end;
  v_ran  bigint := case when (p_job).lease_until is not null then 1 else 0 end;
begin
  if (p_job).key is not null then
    delete from millpond.keys where queue = (p_job).queue and key = (p_job).key;
  end if;
  if p_keep > 0 then
    insert into millpond.retired (seq, pushed_at, due_at, timeout, started_at, id, queue, fence, attempt, attempts, priority, lane,
      key, "group", trace, worker, encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error, finished_at, state)
    select (p_job).seq, (p_job).pushed_at, (p_job).due_at, (p_job).timeout, (p_job).started_at, (p_job).id, (p_job).queue, (p_job).fence,
      (p_job).attempt, (p_job).attempts, (p_job).priority, 1, (p_job).key, (p_job)."group", (p_job).trace, (p_job).worker,
      (p_job).encoding, (p_job).data, (p_job).data_bytes, (p_job).progress_encoding, (p_job).progress, (p_job).progress_bytes,
      (p_job).error, p_now, p_state;
  end if;
  insert into millpond.counts (queue, running, scheduled, waiting, dead, cancelled, room, finished, stopped)
  values ((p_job).queue, -v_ran,
    case when v_ran = 0 and (p_job).scheduled then -1 else 0 end,
    case when v_ran = 0 and not (p_job).scheduled then -1 else 0 end,
    case p_state when 'dead' then v_kept else 0 end, case p_state when 'cancelled' then v_kept else 0 end,
    1 - v_ran, 1, case p_state when 'cancelled' then v_ran else 0 end);
end $$;
