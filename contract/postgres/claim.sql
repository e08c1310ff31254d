-- claim: gives waiting jobs to a worker.
-- In:  queue, worker, limit, lease in ms. places: where this caller's last claim ended, for the priorities 9 … 0, or null: a hint that
--      spares the scan what was claimed already. listener: who wants to be notified of pushes if there were too few jobs; or null.
--      quiet: whoever asks comes back by himself, and once in a while without places: with them nothing before them is looked for
--      once something was found.
-- Out: now; jobs, a line for each, highest priority first, then by place, or null; asleep: the listener was noted only now, or
--      pushes are under way that did not see it yet, so what they store would go unnoticed: claim once more; bounded: the queue has a capacity.
--      Lines are joined by U+001E, their fields by U+001F: seq id fence attempt attempts priority pushed_at due_at, then JSON of
--      what few jobs have (group key timeout trace, and data that is not JSON) or nothing, then data.
--      Fewer than asked for also where the data of what was found comes to 16 MiB: ask for the rest.
-- Invariant: fence and attempt grow by one, after a crash the fence by more; a job is in one claim at a time; none from a paused queue.
--      Needs no fsync: what is undone by a crash is claimed anew, and all that follows from a claim comes after it in the log.

-- The server has crashed since the last claim: claims that were undone have had fences up to some way above the last ones known. A
-- hundred thousand is more than one job can be claimed in the seconds for which a commit may stay undone.
create or replace function millpond.after_crash() returns integer
language plpgsql as $$
declare
  v_fences integer;
begin
  perform from millpond.meta for update;
  select fences into v_fences from millpond.unharmed;
  if not found then
    update millpond.meta set fences = fences + 100000 returning fences into v_fences;
    insert into millpond.unharmed values (v_fences);
  end if;
  return v_fences;
end $$;

-- Whether a push may be under way that did not see who was asleep yet; every push holds a lock on its places (`enter`).
create or replace function millpond.pushing() returns boolean
language plpgsql as $$
declare
  v_place integer;
begin
  select last_value >> 12 into v_place from millpond.place;
  for v_each in v_place - 1 .. v_place loop
    if not pg_try_advisory_lock(hashtext('millpond'), v_each) then return true; end if;
    perform pg_advisory_unlock(hashtext('millpond'), v_each);
  end loop;
  return false;
end $$;

-- Moves the marks up to the first job that waits, but not past places that an unfinished push may hold.
create or replace function millpond.advance(p_queue integer) returns void
language plpgsql as $$
declare
  v_bound bigint;
begin
  perform from millpond.marks where queue = p_queue for update skip locked;
  if not found then return; end if;
  select last_value into v_bound from millpond.place;
  select least(v_bound, min(objid::bigint) << 12) into v_bound from pg_locks
  where locktype = 'advisory' and classid = hashtext('millpond')::oid and objsubid = 2
    and database = (select oid from pg_database where datname = current_database());
  -- A new statement sees every push that had ended when the bound was taken.
  update millpond.marks set places = array(
    select greatest(mark.seq, least(v_bound, coalesce((
      select seq from millpond.waiting
      where queue = p_queue and lane = 0 and not scheduled and priority = (10 - mark.nth)::smallint and seq >= mark.seq
      order by seq limit 1
    ), v_bound)))
    from unnest(places) with ordinality as mark(seq, nth) order by mark.nth)
  where queue = p_queue;
end $$;

create or replace function millpond.claim(
  queue text, worker text, "limit" integer, lease bigint, places bigint[] default null, listener text default null,
  now bigint default null, quiet boolean default false, out at bigint, out jobs text, out asleep boolean, out bounded boolean
) returns record
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_queue  integer;
  v_paused boolean;
  v_fences integer;
  v_marks  bigint[];
  v_from   bigint[];
  v_ctids  tid[];
  v_bytes  bigint;
  v_large  constant bigint := 16777216;
  v_left   integer := claim."limit";
  v_lines  text;
  v_count  integer;
  v_found  integer;
  v_gap    bigint;
  v_merge  boolean;
  v_alone  boolean;
begin
  at := time_of(claim.now);
  asleep := false;
  select unharmed.fences, q.id, q.paused, q.capacity is not null into v_fences, v_queue, v_paused, bounded
  from unharmed left join queues as q on q.name = claim.queue;
  if found then perform set_config('synchronous_commit', 'off', true);
  else
    -- On the disk before any fence above it is known.
    v_fences := after_crash();
    select q.id, q.paused, q.capacity is not null into v_queue, v_paused, bounded from queues as q where q.name = claim.queue;
  end if;
  if v_queue is not null and not v_paused then
    select marks.places into v_marks from marks where queue = v_queue;
    if claim.places is null then v_from := v_marks;
    else
      v_from := array(select greatest(mark, hint) from unnest(v_marks, claim.places) as both_of(mark, hint));
    end if;
    v_alone := pg_try_advisory_xact_lock(hashtext('millpond claim'), v_queue);
    -- A pass on the hint, one on the marks, and more while others take what this one found.
    for v_pass in 1 .. 5 loop
      v_merge := exists (select from waiting where queue = v_queue and lane = 1 and not scheduled);
      if v_merge then
        -- Some came back: their places lie between those of the others. Only what is taken is locked, lest another claim
        -- running beside this one skip what is left.
        v_ctids := array(
          select ctid from (
            (select found.ctid, found.priority, found.seq
             from unnest(v_from) with ordinality as source(seq, nth) cross join lateral (
               select ctid, priority, seq from waiting
               where queue = v_queue and lane = 0 and not scheduled and priority = (10 - source.nth)::smallint and seq >= source.seq
               order by seq limit v_left
             ) as found
             limit v_left)
            union all
            (select ctid, priority, seq from waiting
             where queue = v_queue and lane = 1 and not scheduled order by priority desc, seq limit v_left)
          ) as merged order by priority desc, seq limit v_left);
        v_found := cardinality(v_ctids);
        select coalesce(array_agg(ctid order by priority desc, seq), '{}'), sum(bytes) into v_ctids, v_bytes from (
          select ctid, priority, seq, coalesce(octet_length(data), octet_length(data_bytes), 0) as bytes from waiting
          where ctid = any (v_ctids) for update skip locked
        ) as locked;
      elsif v_alone then
        -- Whoever is alone with the queue need not lock what he takes. What another beside him takes is then missing from the
        -- deletion below, and the next pass looks for more.
        select coalesce(array_agg(ctid), '{}'), sum(bytes) into v_ctids, v_bytes from (
          select found.ctid, found.bytes
          from unnest(v_from) with ordinality as source(seq, nth) cross join lateral (
            select ctid, coalesce(octet_length(data), octet_length(data_bytes), 0) as bytes from waiting
            where queue = v_queue and lane = 0 and not scheduled and priority = (10 - source.nth)::smallint and seq >= source.seq
            order by seq limit v_left
          ) as found
          limit v_left) as alone;
        v_found := cardinality(v_ctids);
      else
        select coalesce(array_agg(ctid), '{}'), sum(bytes) into v_ctids, v_bytes from (
          select found.ctid, found.bytes
          from unnest(v_from) with ordinality as source(seq, nth) cross join lateral (
            select ctid, coalesce(octet_length(data), octet_length(data_bytes), 0) as bytes from waiting
            where queue = v_queue and lane = 0 and not scheduled and priority = (10 - source.nth)::smallint and seq >= source.seq
            order by seq limit v_left
            for update skip locked
          ) as found
          limit v_left) as locked;
        v_found := cardinality(v_ctids);
      end if;
      if v_bytes > v_large then
        v_ctids := array(
          select ctid from (
            select given.ctid, given.nth,
              sum(coalesce(octet_length(data), octet_length(data_bytes), 0)) over (order by given.nth rows between unbounded preceding and 1 preceding) as before
            from unnest(v_ctids) with ordinality as given(ctid, nth) join waiting on waiting.ctid = given.ctid
          ) as sized
          where before is null or before < v_large order by nth);
      end if;
      v_count := 0;
      if cardinality(v_ctids) > 0 then
        with taken as (
          delete from waiting where ctid = any (v_ctids) returning *
        ), moved as (
          insert into running (seq, pushed_at, due_at, timeout, started_at, id, queue, fence, attempt, attempts, priority, lane, key,
            "group", trace, worker, encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error, lease_until)
          select seq, pushed_at, due_at, timeout, at, id, queue, greatest(fence, v_fences) + 1, attempt + 1, attempts, priority, lane, key,
            "group", trace, claim.worker, encoding, data, data_bytes, progress_encoding, progress, progress_bytes, error, at + claim.lease
          from taken
          returning *
        ), sorted as (
          select * from moved order by priority desc, seq
        )
        select string_agg(
            concat_ws(E'\x1f', seq, id, fence, attempt, attempts, priority, pushed_at, due_at,
              case when key is null and "group" is null and timeout is null and trace is null and encoding = 'json' then ''
              else json_build_object('key', key, 'group', "group", 'timeout', timeout, 'trace', trace,
                'body', case when encoding <> 'json' then body_of(encoding, null, data_bytes) end)::text end,
              coalesce(data, '')),
            E'\x1e'),
          count(*), max(seq - v_marks[10 - priority]) filter (where lane = 0)
        into v_lines, v_count, v_gap from sorted;
        v_left := v_left - v_count;
        if v_count > 0 then
          jobs := concat_ws(E'\x1e', jobs, v_lines);
          insert into counts (queue, waiting, running, room) values (v_queue, -v_count, v_count, v_count);
        end if;
      end if;
      exit when v_left <= 0 or v_bytes > v_large or claim.quiet and v_count > 0;
      if v_from <> v_marks then v_from := v_marks;
      else exit when v_found = 0 or not (v_merge or v_alone and v_count < v_found);
      end if;
    end loop;
    if v_gap is null then
      select last_value - v_marks[6] - 50000 into v_gap from place;
    end if;
    if v_from = v_marks and v_gap > 5000 then perform advance(v_queue); end if;
  end if;
  if v_left > 0 and v_bytes > v_large is not true and claim.listener is not null and not claim.quiet then
    insert into sleepers (queue, listener) values (claim.queue, claim.listener) on conflict do nothing;
    asleep := found;
    if not asleep and jobs is null then asleep := pushing(); end if;
  end if;
end $$;
