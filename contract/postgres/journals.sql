-- journals: what steps leave behind, contract/steps.md.
-- journal
-- In:  queue; ids and fences of claims, in step; logs: as of `complete`. The entries, in their order: `of`, the number (from 1) of the
--      claim, names, metas, bodies (tagged texts, or null).
-- Out: a text per claim: ok; stale; full; held: another transaction has the job or its journal, and nothing was added: send it again.
-- entries
-- In:  ids, and per job the number of the last entry that the caller has.
-- Out: a JSON list of null, where the job is unknown, or entries (lists of n, name, meta, tagged body) and more.
-- signal_jobs
-- In:  items: JSON list of name, meta, body (a tagged text or null), and an id, or a queue and a key. own: the call is its whole
--      transaction.
-- Out: a text per item: ok, ended, full, none or held, a space, the id; and another space and the queue, where the job waits now.
-- signal, for people: a signal in the caller's transaction. select millpond.signal('019b0000-...', 'paid', '{"amount": 3}')
-- Out: ok, ended, full or none. Until the transaction ends, the job's handler waits with its next step.
-- Invariant: who adds entries holds the row of `journals` until the commit. So what a reader sees later has higher numbers.
--      A park reads the number of signals under the same lock. So a signal before it is seen, and one after it finds the job parked.
--      Who needs both holds the row of the job first, but for a signal, which takes that of a parked job last. Calls that carry many items
--      wait for neither.

-- The rows of `journals` of these jobs that could be locked; new ones are made. Places are given in the order of ids.
create or replace function millpond.hold_journals(p_ids uuid[], p_places bigint[]) returns bigint[]
language plpgsql as $$
declare
  v_patience constant text := current_setting('lock_timeout');
  v_new      bigint[] := array(
    select place from unnest(p_places) with ordinality as given(place, nth)
    where not exists (select from millpond.journals where journals.place = given.place) order by nth);
  v_place    bigint;
begin
  if cardinality(v_new) > 0 then
    -- Another transaction may be about to make the same one: each of the others is made by itself then.
    perform set_config('lock_timeout', '50ms', true);
    begin
      insert into millpond.journals (place, id)
      select place, p_ids[array_position(p_places, place)] from unnest(v_new) as given(place) on conflict do nothing;
    exception when lock_not_available or deadlock_detected then
      foreach v_place in array v_new loop
        begin
          insert into millpond.journals (place, id) values (v_place, p_ids[array_position(p_places, v_place)]) on conflict do nothing;
        exception when lock_not_available or deadlock_detected then null;
        end;
      end loop;
    end;
    perform set_config('lock_timeout', v_patience, true);
  end if;
  return array(select place from millpond.journals where place = any (p_places) order by id for update skip locked);
end $$;

-- From now on claims in the queue look for journals. To be called in the transaction that makes one. False: somebody has the queue's row.
create or replace function millpond.expect_journals(p_queue integer, p_patient boolean) returns boolean
language plpgsql as $$
begin
  if (select journals from millpond.queues where id = p_queue) then return true; end if;
  if p_patient then perform from millpond.queues where id = p_queue for no key update;
  else perform from millpond.queues where id = p_queue for no key update skip locked;
  end if;
  update millpond.queues set journals = true where id = p_queue and not journals and found;
  return coalesce((select journals from millpond.queues where id = p_queue), false);
end $$;

-- Adds entries whose names are new. p_places: of items, whose rows of `journals` are locked; null: nothing of this item is added. p_of: per
-- entry, the number of its item. Returns the numbers of items that would outgrow a bound: none of their entries is added.
create or replace function millpond.add_entries(p_places bigint[], p_of integer[], p_names text[], p_metas text[], p_bodies text[])
returns integer[]
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_full integer[];
begin
  with given as (
    select p_places[item] as place, item, name, meta, millpond.encoding_of(body) as encoding, millpond.text_of(body) as body,
      millpond.bytes_of(body) as body_bytes, nth
    from unnest(p_of, p_names, p_metas, p_bodies) with ordinality as each(item, name, meta, body, nth)
    where p_places[item] is not null
  ), fresh as (
    select distinct on (place, name) *,
      octet_length(name) + octet_length(meta) + coalesce(octet_length(body), octet_length(body_bytes), 0) as size
    from given
    where not exists (select from millpond.entries where entries.place = given.place and entries.name = given.name)
    order by place, name, nth
  ), sized as (
    -- With all of its item, and of those before it.
    select fresh.*, journals.last,
      journals.count + count(*) over items > 10000 or journals.bytes + sum(fresh.size) over items > 16777216 as is_full
    from fresh join millpond.journals on journals.place = fresh.place
    window items as (partition by fresh.place order by item)
  ), added as (
    insert into millpond.entries (place, n, name, meta, encoding, body, body_bytes)
    select place, last + row_number() over (partition by place order by nth), name, meta, encoding, body, body_bytes
    from sized where not is_full
  ), noted as (
    update millpond.journals set last = last + own.count, count = journals.count + own.count, bytes = journals.bytes + own.bytes,
      signals = journals.signals + own.signals
    from (
      select place, count(*) as count, sum(size) as bytes, count(*) filter (where name like '!%') as signals
      from sized where not is_full group by place
    ) as own where journals.place = own.place
  )
  select coalesce(array_agg(distinct item), '{}') into v_full from sized where is_full;
  return v_full;
end $$;

create or replace function millpond.journal(
  queue text, ids uuid[], fences bigint[], "of" integer[], names text[], metas text[], bodies text[], logs text[] default null
) returns text[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_outcomes text[] := array_fill('stale'::text, array[cardinality(journal.ids)]);
  v_queue    integer;
  v_nths     integer[];
  v_ids      uuid[];
  v_found    bigint[];
  v_held     bigint[] := '{}';
  v_places   bigint[] := array_fill(null::bigint, array[cardinality(journal.ids)]);
  v_nth      integer;
begin
  perform read_committed();
  select id into v_queue from queues where name = journal.queue;
  -- The claims stay valid until the commit. An extension of one is `held` meanwhile.
  select array_agg(nth), array_agg(id), array_agg(place) into v_nths, v_ids, v_found from (
    select held.nth, job.id, job.place from (
      select id, fence, nth from unnest(journal.ids, journal.fences) with ordinality as given(id, fence, nth) order by id
    ) as held cross join lateral (
      select id, place from running where id = held.id and fence = held.fence and queue + 0 = v_queue for no key update skip locked
    ) as job
  ) as found;
  if v_ids is not null and expect_journals(v_queue, false) then v_held := hold_journals(v_ids, v_found); end if;
  for at in 1 .. coalesce(cardinality(v_ids), 0) loop
    if v_found[at] = any (v_held) then
      v_places[v_nths[at]] := v_found[at];
      v_outcomes[v_nths[at]] := 'ok';
    end if;
  end loop;
  if 'stale' = any (v_outcomes) then
    for v_nth in
      select nth from unnest(journal.ids, journal.fences) with ordinality as given(id, fence, nth)
      where v_places[nth] is null and exists (select from running where id = given.id and fence = given.fence and queue + 0 = v_queue)
    loop
      v_outcomes[v_nth] := 'held';
    end loop;
  end if;
  if journal.logs is not null then
    update running set log = log_with(log, held.lines)
    from unnest(journal.ids, journal.fences, journal.logs) as held(id, fence, lines)
    where running.id between held.id and held.id and running.fence = held.fence and held.lines is not null
      and running.place = any (v_held);
  end if;
  foreach v_nth in array add_entries(v_places, journal."of", journal.names, journal.metas, journal.bodies) loop
    v_outcomes[v_nth] := 'full';
  end loop;
  return v_outcomes;
end $$;

create or replace function millpond.entries(ids uuid[], after bigint[]) returns json
language plpgsql stable security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_room  bigint := 4194304;
  v_alone boolean := true;
  v_pages json[] := '{}';
  v_place bigint;
  v_page  json;
  v_bytes bigint;
  v_last  bigint;
begin
  for at in 1 .. cardinality(entries.ids) loop
    select place into v_place from jobs where id = entries.ids[at];
    if not found then
      v_pages[at] := 'null';
      continue;
    end if;
    -- The first one of all is given, however large. Lengths are known without reading what they are of.
    select json_agg(json_build_array(n, name, meta, body_of(encoding, body, body_bytes)) order by n), max(total), max(n)
    into v_page, v_bytes, v_last from (
      select *, sum(octet_length(name) + octet_length(meta) + coalesce(octet_length(body), octet_length(body_bytes), 0)::bigint)
        over (order by n rows unbounded preceding) as total, row_number() over (order by n) as nth
      from millpond.entries as own where own.place = v_place and own.n > entries.after[at]
    ) as page where total <= v_room or v_alone and nth = 1;
    v_room := v_room - coalesce(v_bytes, 0);
    v_alone := v_alone and v_page is null;
    v_pages[at] := json_build_object('entries', coalesce(v_page, '[]'), 'more', exists (
      select from millpond.entries as own where own.place = v_place and own.n > coalesce(v_last, entries.after[at])));
  end loop;
  return array_to_json(v_pages);
end $$;

-- One signal. Returns the status, and `woken` where the job was parked and waits now. p_patient: waits for locks; else it may be `held`.
create or replace function millpond.signal_one(p_id uuid, p_name text, p_meta text, p_body text, p_patient boolean, p_now bigint)
returns text
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_known boolean;
  v_line  integer;
  own     millpond.journals;
  job     record;
begin
  loop
    -- In one statement, as it may be on its way from one table to the other.
    select each.* into job from (
      select place, queue, state, fence, "group" from millpond.waiting where id = p_id
      union all
      select place, queue, state, fence, "group" from millpond.running where id = p_id
    ) as each;
    if not found then
      return case when exists (select from millpond.jobs where id = p_id) then 'ended' else 'none' end;
    end if;
    if own.place is distinct from job.place then
      if not millpond.expect_journals(job.queue, p_patient) then return 'held'; end if;
      if p_patient then
        insert into millpond.journals (place, id) values (job.place, p_id) on conflict do nothing;
        select * into own from millpond.journals where place = job.place for update;
      elsif cardinality(millpond.hold_journals(array[p_id], array[job.place])) = 0 then return 'held';
      else select * into own from millpond.journals where place = job.place;
      end if;
      -- It may have been parked, or have ended, until now.
      continue;
    end if;
    exit when job.state <> 'scheduled' or own.parked is null or own.park_fence <> job.fence;
    v_known := exists (select from millpond.waiting where id = p_id and state = 'scheduled');
    if p_patient then perform from millpond.waiting where id = p_id and state = 'scheduled' for no key update;
    else perform from millpond.waiting where id = p_id and state = 'scheduled' for no key update skip locked;
    end if;
    exit when found;
    if v_known and not p_patient then return 'held'; end if;
  end loop;
  if millpond.add_entries(array[job.place], '{1}', array[p_name], array[p_meta], array[p_body]) <> '{}' then return 'full'; end if;
  if job.state <> 'scheduled' or own.parked is null or own.park_fence <> job.fence then return 'ok'; end if;
  v_line := millpond.line_back(job.queue);
  update millpond.waiting set state = 'waiting', due_at = p_now, line = v_line where id = p_id;
  if v_line = -1 then insert into millpond.arrivals (queue, groups) values (job.queue, array[coalesce(job."group", '')]); end if;
  insert into millpond.moves (queue, segment, was, becomes, cause, count) values (job.queue, -1, 'scheduled', 'waiting', 'signal', 1);
  return 'woken';
end $$;

create or replace function millpond.signal_jobs(items json, own boolean default true, now bigint default null) returns text[]
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_now      bigint := time_of(signal_jobs.now);
  v_outcomes text[] := array_fill('none '::text, array[json_array_length(signal_jobs.items)]);
  v_bells    text[] := '{}';
  v_status   text;
  v_queue    text;
  item       record;
begin
  perform read_committed();
  for item in
    select given.nth, given.name, given.meta, given.body, coalesce(given.id, keys.id) as id from rows from (
      json_to_recordset(signal_jobs.items) as (id uuid, queue text, key text, name text, meta text, body text)
    ) with ordinality as given(id, queue, key, name, meta, body, nth)
    left join queues on given.id is null and queues.name = given.queue
    left join lateral (
      select id from keys where keys.queue = queues.id and keys.key = given.key and until is null offset 0
    ) as keys on true
    order by id, nth
  loop
    continue when item.id is null;
    v_status := signal_one(item.id, item.name, item.meta, item.body, false, v_now);
    v_outcomes[item.nth] := v_status || ' ' || item.id;
    if v_status = 'woken' then
      select queues.name into v_queue from waiting join queues on queues.id = waiting.queue where waiting.id = item.id;
      v_bells := v_bells || v_queue;
      v_outcomes[item.nth] := 'ok ' || item.id || ' ' || v_queue;
    end if;
  end loop;
  perform ring('work', name, signal_jobs.own) from (select distinct unnest(v_bells) as name order by 1) as bells;
  return v_outcomes;
end $$;

create or replace function millpond.signal(id uuid, name text, data json default 'null') returns text
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_variable
declare
  v_now    bigint := time_of(null);
  v_status text;
begin
  perform read_committed();
  if name is null or char_length(name) not between 1 and 200 or name ~ '[[:cntrl:]]' then
    raise exception 'InvalidName: the name of a signal has 1 to 200 characters, none of them a control character' using errcode = '22023';
  end if;
  perform check_data(data::text);
  v_status := signal_one(id, '!' || name || '/' || new_id(), json_build_object('at', v_now)::text, 'j' || data::text, true, v_now);
  if v_status <> 'woken' then return v_status; end if;
  perform ring('work', queues.name, false) from waiting join queues on queues.id = waiting.queue where waiting.id = signal.id;
  return 'ok';
end $$;

-- Of jobs that were dead: what their workers wrote from this number on is gone. Part of `requeue_from`.
create or replace function millpond.forget_entries(p_places bigint[], p_from bigint) returns void
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
begin
  perform from millpond.journals where place = any (p_places) order by id for update;
  with gone as (
    delete from millpond.entries where place = any (p_places) and n >= p_from and name not like '!%'
    returning place, octet_length(name) + octet_length(meta) + coalesce(octet_length(body), octet_length(body_bytes), 0) as bytes
  )
  update millpond.journals set count = journals.count - own.count, bytes = journals.bytes - own.bytes
  from (select place, count(*) as count, sum(bytes) as bytes from gone group by place) as own where journals.place = own.place;
end $$;

-- As `requeue` of ids. Those that come back lose what their workers wrote from a number on.
create or replace function millpond.requeue_from(ids uuid[], forget bigint, now bigint default null, out at bigint, out queues text[])
returns record
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_ids uuid[];
begin
  perform read_committed();
  v_ids := array(select id from retired where id = any (requeue_from.ids) order by id for update);
  select back.at, back.queues into requeue_from.at, requeue_from.queues from requeue(requeue_from.ids, now => requeue_from.now) as back;
  perform forget_entries(array(select place from waiting where id = any (v_ids)), requeue_from.forget);
end $$;

-- For restore: the journals of jobs that were just restored, and what they wait for. p_outcomes: as of `restore`.
create or replace function millpond.restore_journals(p_records json, p_outcomes text[]) returns void
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  given record;
  job   record;
begin
  for given in
    select each.* from rows from (json_to_recordset(p_records) as (id uuid, state text, parked text, entries json))
      with ordinality as each(id, state, parked, entries, nth)
    where p_outcomes[nth] = 'restored' and (parked is not null or json_array_length(entries) > 0)
  loop
    select jobs.place, jobs.fence, queues.id as queue into job
    from millpond.jobs join millpond.queues on queues.name = jobs.queue where jobs.id = given.id;
    continue when not found;
    perform millpond.expect_journals(job.queue, true);
    insert into millpond.journals (place, id, parked, park_fence)
    values (job.place, given.id, case when given.state in ('blocked', 'scheduled', 'waiting') then given.parked end, job.fence);
    perform millpond.add_entries(array[job.place], array_agg(1), array_agg(name order by nth), array_agg(meta order by nth),
      array_agg(body order by nth))
    from rows from (json_to_recordset(given.entries) as (name text, meta text, body text))
      with ordinality as each(name, meta, body, nth) having count(*) > 0;
  end loop;
end $$;

-- For sweeps: removes journals of jobs that are gone. Goes through all of them, 500 a call at the most, and begins again a minute later.
-- Returns how many are gone; p_limit where more of them are likely to come next.
create or replace function millpond.prune_journals(p_limit integer, p_now bigint) returns integer
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_step   constant integer := least(p_limit, 500);
  v_most   constant integer := 10000;
  v_places bigint[];
  v_ids    uuid[];
  v_known  bigint[];
  v_gone   bigint[];
  v_few    bigint[];
  at       millpond.journal_walk;
begin
  if not exists (select from millpond.journals) then return 0; end if;
  -- Two at once would each go a part of the way.
  if not pg_try_advisory_xact_lock(hashtext('millpond prune'), 1) then return 0; end if;
  select * into at from millpond.journal_walk limit 1;
  if not found then insert into millpond.journal_walk (place, next_at) values (0, 0) returning * into at; end if;
  -- A later time is that of a clock that went back.
  if at.next_at - p_now between 1 and 60000 then return 0; end if;
  select array_agg(place), array_agg(id) into v_places, v_ids
  from (select place, id from millpond.journals where place > at.place order by place limit v_step) as next;
  -- In one statement, as jobs go from one table to the next.
  v_known := array(
    select place from millpond.waiting where id = any (v_ids)
    union all select place from millpond.running where id = any (v_ids)
    union all select place from millpond.retired where id = any (v_ids)
    union all select place from millpond.done where id = any (v_ids));
  v_gone := array(
    select place from millpond.journals where place in (select unnest(v_places) except select unnest(v_known))
    order by place for update skip locked);
  -- As many as have v_most entries; one at least.
  v_few := array(
    select place from (
      select place, sum(count) over (order by place rows between unbounded preceding and 1 preceding) as before
      from millpond.journals where place = any (v_gone)
    ) as sized where before is null or before < v_most order by place);
  delete from millpond.entries where place = any (v_few);
  delete from millpond.journals where place = any (v_few);
  if cardinality(v_few) < cardinality(v_gone) then
    update millpond.journal_walk set place = v_few[cardinality(v_few)], next_at = p_now;
    return p_limit;
  elsif coalesce(cardinality(v_places), 0) < v_step then update millpond.journal_walk set place = 0, next_at = p_now + 60000;
  else
    update millpond.journal_walk set place = v_places[cardinality(v_places)], next_at = p_now;
    if cardinality(v_gone) > v_step / 2 then return p_limit; end if;
  end if;
  return cardinality(v_gone);
end $$;
