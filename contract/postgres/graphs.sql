-- graphs: jobs that wait for other jobs, contract/graphs.md. Part of each operation that ends jobs, of push, restore and sweep.
-- A blocked job has its row in `waiting`, and one in `children` with the number of its open links.
-- A link is open if the parent's row in `links` says so, and the child is blocked and has the parent in `after`.
-- Statements that look a child up by its id ask for `waits_for > 0`, which is so where `is_blocked` is. That one has an index, which a
-- planner would walk whole whose statistics are of a moment when no job was blocked.
--
-- Who closes an open link, or makes one to a child that is there, holds the child's row in `waiting`. So two last parents that end at
-- once follow each other, and the second one frees the child. Rows of children are locked in the order of their ids, without a wait or
-- for 100 ms at the most: whoever gets none leaves the parent in `ended`, for the sweeps. So endings do not hang behind the transaction
-- of a caller, and no two of these wait for each other.
--
-- A push locks no parent: else claims would pass over it, and its ending would hang until the transaction of the caller ends. It looks
-- at the parents, makes the links, and notes each parent that it has seen live as `unsure`. An ending takes the job's row out of its
-- table first, and looks for links with a later statement.
--   The push has committed before that look: the ending sees the links.
--   Else a sweep finds the note once the push has committed. It locks the parent's row, which shows that nobody is ending it: all who do
--   from then on see the links. If the parent has ended, the sweep settles it. If somebody holds its row, the note stays.
-- Of a parent that is gone it is not known whether it was done. So where done jobs are kept for less than a minute, the push does lock
-- the parent's row, and its ending waits for the transaction.

create or replace function millpond.graph_step() returns integer
language sql immutable parallel safe as $$ select 1000 $$;

-- Whether a job of the queue may have a child. To be called when the job's row was taken out of its table.
create or replace function millpond.has_children(p_queue integer) returns boolean
language plpgsql as $$
begin
  return exists (select from millpond.parents where queue in (p_queue, 0, -1));
end $$;

-- From now on endings in these queues look for children. 0: in any queue, as a restored job awaits a parent that is not there. The row is
-- locked until that job is committed, unless nobody else sees it yet: so prune_links leaves it alone.
create or replace function millpond.expect_children(p_queues integer[]) returns void
language plpgsql as $$
begin
  insert into millpond.parents (queue)
  select distinct id from unnest(p_queues) as given(id) where id <> 0 and not exists (select from millpond.parents where queue = id);
  if 0 = any (p_queues) then
    perform from millpond.parents where queue = 0 limit 1 for share skip locked;
    if not found then insert into millpond.parents (queue) values (0); end if;
  end if;
end $$;

-- Locks the rows of these blocked jobs. Returns those that it got. p_patient: waits a little.
create or replace function millpond.hold_children(p_ids uuid[], p_patient boolean) returns uuid[]
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_patience constant text := current_setting('lock_timeout');
  v_held     uuid[] := array(
    select id from millpond.waiting where id = any (p_ids) and state = 'blocked' order by id for no key update skip locked);
begin
  if p_patient and cardinality(v_held) < cardinality(p_ids) then
    begin
      perform set_config('lock_timeout', '100ms', true);
      v_held := array(select id from millpond.waiting where id = any (p_ids) and state = 'blocked' order by id for no key update);
      perform set_config('lock_timeout', v_patience, true);
    exception when lock_not_available or deadlock_detected then null;
    end;
  end if;
  return v_held;
end $$;

-- A blocked job leaves its state: it waits for nobody.
create or replace function millpond.unblock(p_id uuid) returns void
language plpgsql as $$
begin
  update millpond.children set is_blocked = false, waits_for = 0 where id = p_id;
end $$;

-- A blocked job, whose row is locked, is cancelled since a parent has failed. Returns its bells.
create or replace function millpond.cancel_blocked(p_id uuid, p_parent uuid, p_state text, p_now bigint) returns text[]
language plpgsql as $$
declare
  v_waiting millpond.waiting;
  v_job     millpond.running;
  v_queue   record;
begin
  delete from millpond.waiting where id = p_id returning * into v_waiting;
  v_job := v_waiting;
  v_job.error := json_build_object('code', 'ParentFailed', 'name', 'MillpondError',
    'message', format('The job %s, which it waited for, is %s.', p_parent, p_state));
  perform millpond.unblock(p_id);
  select name, keep_dead into v_queue from millpond.queues where id = v_job.queue;
  perform millpond.retire(v_job, 'cancelled', 'cancel', p_now, v_queue.keep_dead);
  return array['finished:' || v_queue.name, 'room:' || v_queue.name];
end $$;

-- Blocked jobs, whose rows are locked, wait for nobody any more: they are waiting, or scheduled. Returns their bells.
-- p_now: a time that the caller holds.
create or replace function millpond.free_children(p_ids uuid[], p_now bigint) returns text[]
language plpgsql as $$
declare
  v_bells text[] := '{}';
  v_line  integer;
  v_queue record;
begin
  for v_queue in
    select own.* from (select distinct queue from millpond.waiting where id = any (p_ids)) as given cross join lateral (
      select id, name from millpond.queues where queues.id = given.queue offset 0
    ) as own order by own.id
  loop
    v_line := millpond.line_back(v_queue.id);
    with freed as (
      update millpond.waiting set due_at = greatest(due_at, p_now), state = case when due_at > p_now then 'scheduled' else 'waiting' end,
        line = case when due_at > p_now then 0 else v_line end
      where id = any (p_ids) and queue + 0 = v_queue.id
      returning state, "group"
    ), arrived as (
      insert into millpond.arrivals (queue, groups)
      select v_queue.id, array_agg(distinct coalesce("group", '')) from freed where state = 'waiting' having v_line = -1 and count(*) > 0
    )
    insert into millpond.moves (queue, segment, was, becomes, cause, count)
    select v_queue.id, -1, 'blocked', state, 'settle', count(*) from freed group by state;
    v_bells := v_bells || ('work:' || v_queue.name);
  end loop;
  return v_bells;
end $$;

-- Settles jobs that have ended, and what is cancelled thereby: p_limit links at the most. Returns how many links it looked at, what is
-- left, and the bells of children.
create or replace function millpond.settle(
  p_ended millpond.ended[], p_limit integer, p_now bigint, p_patient boolean,
  out looked integer, out rest millpond.ended[], out bells text[]
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_rows     tid[];
  v_parents  uuid[];
  v_states   text[];
  v_children uuid[];
  v_each     uuid[];
  v_held     uuid[];
  v_stuck    uuid[];
  v_all      boolean;
  v_counts   integer[];
  v_failed   text[];
  v_gone     uuid[];
  v_free     uuid[];
  v_child    record;
begin
  looked := 0;
  rest := '{}';
  bells := '{}';
  loop
    select array_agg(row_at), array_agg(parent), array_agg(state), array_agg(child) into v_rows, v_parents, v_states, v_children from (
      select link.row_at, one.parent, one.state, child from unnest(p_ended) as one cross join lateral (
        select ctid as row_at, coalesce(remaining, children) as open from millpond.links where parent = one.parent and is_open
        for update skip locked
      ) as link cross join lateral unnest(link.open) as child limit p_limit - looked
    ) as links;
    exit when v_rows is null and looked < p_limit;
    v_gone := '{}';
    if v_rows is not null then
      looked := looked + cardinality(v_rows);
      v_each := array(select distinct unnest(v_children) order by 1);
      v_held := millpond.hold_children(v_each, p_patient);
      -- Those that somebody else holds. One that does not wait is not waited for.
      v_all := cardinality(v_held) = cardinality(v_each);
      v_stuck := case when v_all then '{}' else array(
        select id from unnest(v_each) as given(id) where id <> all (v_held)
          and exists (select from millpond.waiting where waiting.id = given.id and state = 'blocked' offset 0)) end;
      update millpond.links set is_open = closed.count < cardinality(coalesce(remaining, children)),
        remaining = case when closed.count < cardinality(coalesce(remaining, children)) then
          array(select unnest(coalesce(remaining, children)) except select unnest(closed.ids)) end
      from (
        select row_at, array_agg(child) as ids, count(*) as count from unnest(v_rows, v_children) as one(row_at, child)
        where child <> all (v_stuck) group by row_at
      ) as closed where links.ctid = closed.row_at;
      -- From here on statements see what was committed before the rows were locked.
      -- `after` of each child is read once: it may be long, and `[:]` keeps it for all of its links.
      select array_agg(id), array_agg(count), array_agg(failed) into v_each, v_counts, v_failed from (
        select own.child as id, count(distinct one.parent)::integer as count,
          min(one.parent || ' ' || one.state) filter (where one.state <> 'done') as failed
        from (
          select child, array_agg(parent) as parents, array_agg(state) as states
          from unnest(v_parents, v_states, v_children) as given(parent, state, child)
          where v_all or child = any (v_held) group by child
        ) as own cross join lateral (
          select children.after[:] as after from millpond.children where children.id = own.child and waits_for > 0 offset 0
        ) as job cross join lateral unnest(own.parents, own.states) as one(parent, state)
        where one.parent = any (job.after) group by own.child
      ) as counted;
      for v_child in
        select one.id, one.failed from unnest(v_each, v_failed) as one(id, failed) cross join lateral (
          select on_dead from millpond.children where children.id = one.id offset 0
        ) as job where one.failed is not null and job.on_dead = 'cancel' order by one.id
      loop
        bells := bells || millpond.cancel_blocked(
          v_child.id, split_part(v_child.failed, ' ', 1)::uuid, split_part(v_child.failed, ' ', 2), p_now);
        v_gone := v_gone || v_child.id;
      end loop;
      with lessened as (
        update millpond.children set waits_for = waits_for - one.count, is_blocked = waits_for > one.count from (
          select given.count, job.row_at from unnest(v_each, v_counts) as given(id, count) cross join lateral (
            select ctid as row_at from millpond.children where children.id = given.id and waits_for > 0 offset 0
          ) as job
        ) as one where children.ctid = one.row_at
        returning children.id, is_blocked
      )
      select array_agg(id) filter (where not is_blocked) into v_free from lessened;
      if v_free is not null then bells := bells || millpond.free_children(v_free, p_now); end if;
    end if;
    rest := rest || array(
      select one from unnest(p_ended) as one
      where exists (select from millpond.links where links.parent = one.parent and is_open offset 0));
    p_ended := array(select row(null, id, 'cancelled')::millpond.ended from unnest(v_gone) as given(id));
    exit when cardinality(p_ended) = 0;
  end loop;
end $$;

-- Rings for children, whoever is asleep: the process that ended the parent is not told of them otherwise.
create or replace function millpond.tell(p_bells text[]) returns void
language sql as $$
  select pg_notify('millpond', bell) from (select distinct unnest(p_bells) as bell) as bells where bell not like 'room:%'
$$;

-- Jobs have ended, by this transaction. Returns the bells of their children, for `ring_all`.
create or replace function millpond.end_of(p_ids uuid[], p_state text, p_now bigint) returns text[]
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  settled record;
begin
  if not exists (select from millpond.links where parent = any (p_ids) and is_open) then return '{}'; end if;
  select * into settled from millpond.settle(
    array(select row(null, id, p_state)::millpond.ended from unnest(p_ids) as given(id)), millpond.graph_step(), p_now, true);
  insert into millpond.ended (parent, state) select parent, state from unnest(settled.rest);
  perform millpond.tell(settled.bells);
  return settled.bells;
end $$;

-- As `settle`, for a sweep: what would have to wait, as another transaction holds the key of a child that is cancelled, is left.
create or replace function millpond.settle_free(
  p_ended millpond.ended[], p_now bigint, out looked integer, out rest millpond.ended[], out bells text[]
) language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_patience constant text := current_setting('lock_timeout');
  v_each     millpond.ended;
  settled    record;
begin
  begin
    perform set_config('lock_timeout', '100ms', true);
    select * into settled from millpond.settle(p_ended, millpond.graph_step(), p_now, false);
    looked := settled.looked;
    rest := settled.rest;
    bells := settled.bells;
    perform set_config('lock_timeout', v_patience, true);
    return;
  exception when lock_not_available or deadlock_detected then null;
  end;
  looked := 0;
  rest := '{}';
  bells := '{}';
  foreach v_each in array p_ended loop
    begin
      perform set_config('lock_timeout', '10ms', true);
      select * into settled from millpond.settle(array[v_each], millpond.graph_step(), p_now, false);
      looked := looked + settled.looked;
      rest := rest || settled.rest;
      bells := bells || settled.bells;
      perform set_config('lock_timeout', v_patience, true);
    exception when lock_not_available or deadlock_detected then rest := rest || v_each;
    end;
  end loop;
end $$;

-- Settles what endings have left, and looks at the parents that were noted: see above. `more`: there is more to do.
create or replace function millpond.settle_rest(p_now bigint, out more boolean, out bells text[]) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_rows    millpond.ended[];
  v_unsure  uuid[];
  v_waiting uuid[];
  v_running uuid[];
  settled   record;
begin
  more := false;
  bells := '{}';
  if not exists (select from millpond.ended) then return; end if;
  v_rows := array(select ended from millpond.ended order by id limit millpond.graph_step() for update skip locked);
  more := cardinality(v_rows) >= millpond.graph_step();
  v_unsure := array(select distinct parent from unnest(v_rows) where state in ('unsure', 'unknown') order by 1);
  if cardinality(v_unsure) > 0 then
    v_waiting := array(select id from millpond.waiting where id = any (v_unsure) order by id for key share skip locked);
    v_running := array(select id from millpond.running where id = any (v_unsure) order by id for key share skip locked);
    perform millpond.expect_children(array(
      select queue from millpond.waiting where id = any (v_waiting) union select queue from millpond.running where id = any (v_running)));
    -- A claim passes over what is locked here.
    bells := array(
      select distinct 'work:' || name from unnest(v_waiting) as given(id) cross join lateral (
        select queue, state from millpond.waiting where waiting.id = given.id offset 0
      ) as job cross join lateral (select name from millpond.queues where queues.id = job.queue offset 0) as q
      where job.state = 'waiting');
    with seen as (
      select one.*, job.state as became, one.state in ('unsure', 'unknown') as noted from unnest(v_rows) as one left join lateral (
        select state from millpond.all_jobs as known where known.id = one.parent and one.state in ('unsure', 'unknown') offset 0
      ) as job on true
    ), judged as (
      -- A parent of a restored job that is not there is still awaited.
      select *, noted and (parent = any (v_waiting || v_running) or state = 'unknown' and became is null) as dropped from seen
    ), gone as (
      delete from millpond.ended using judged where ended.id = judged.id and judged.dropped
    )
    select coalesce(array_agg(row(id, parent, case when noted then coalesce(became, 'removed') else state end)::millpond.ended), '{}')
    -- Of those whose rows somebody holds, the note stays.
    into v_rows from judged where not dropped and (not noted or became is null or became in ('done', 'dead', 'cancelled'));
  end if;
  if cardinality(v_rows) > 0 then
    select * into settled from millpond.settle_free(v_rows, p_now);
    delete from millpond.ended where id in (select id from unnest(v_rows));
    insert into millpond.ended (parent, state) select parent, state from unnest(settled.rest);
    more := more or settled.looked >= millpond.graph_step() and cardinality(settled.rest) > 0;
    perform millpond.tell(settled.bells);
    bells := bells || settled.bells;
  end if;
end $$;

create or replace function millpond.is_known(p_id uuid) returns boolean
language plpgsql stable as $$
begin
  return exists (select from millpond.waiting where id = p_id) or exists (select from millpond.running where id = p_id)
    or exists (select from millpond.retired where id = p_id) or exists (select from millpond.done where id = p_id);
end $$;

-- The closed links of these parents go: of jobs that are gone, or of those that had the ids of jobs just stored. Their children still have
-- them in `after`: a parent without a link is gone.
create or replace function millpond.forget_links(p_ids uuid[]) returns void
language sql as $$
  delete from millpond.links where parent = any (p_ids) and not is_open
$$;

-- Of these done jobs, those with a live child, which may ask for their results; and all others, once it has looked at 20,000 children.
create or replace function millpond.with_live_children(p_ids uuid[]) returns uuid[]
language plpgsql stable
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_left integer := 20000;
  v_live uuid[] := '{}';
  v_id   uuid;
  v_nth  bigint;
begin
  foreach v_id in array p_ids loop
    if v_left > 0 then
      select nth into v_nth from (
        select child, row_number() over () as nth from millpond.links cross join lateral unnest(children) as child
        where parent = v_id limit v_left
      ) as below
      where exists (select from millpond.waiting where id = child) or exists (select from millpond.running where id = child)
      limit 1;
      if found then
        v_left := v_left - v_nth;
        v_live := v_live || v_id;
      else
        v_left := v_left - (select coalesce(sum(cardinality(children)), 0) from millpond.links where parent = v_id);
        if v_left < 0 then v_live := v_live || v_id; end if;
      end if;
    else
      v_live := v_live || v_id;
    end if;
  end loop;
  return v_live;
end $$;

-- Done jobs of a segment leave the lists and counts, and stay for their children. Returns how many there were.
create or replace function millpond.keep_for_children(p_segment smallint, p_ids uuid[]) returns bigint
language plpgsql as $$
declare
  v_count bigint;
begin
  if cardinality(p_ids) = 0 then return 0; end if;
  update millpond.segments set used = true where segment = 8 and not used;
  with kept as (
    update millpond.done set segment = 8 where segment = p_segment and id = any (p_ids) returning queue
  ), noted as (
    insert into millpond.moves (queue, segment, was, becomes, cause, count)
    select queue, p_segment, 'done', 'gone', 'expire', count(*) from kept group by queue returning count
  )
  select coalesce(sum(count), 0) into v_count from noted;
  return v_count;
end $$;

-- Removes what is known of jobs that are gone. Goes through all links and children, a step a call, and begins again a minute later.
-- On the way it finds out whether an awaited parent is left. If none is, endings no longer look for children in all queues:
--
--   0 -- a walk begins --> -1 -- it ends --> gone
--   ^------ a parent is awaited ----'
--
-- A walk begins with the rows that nobody holds. A restore that has such a row, or makes one, has it until it is committed, and then its
-- links are seen by all later walks. Of a restore that was committed before, this walk sees the links. A parent that has come meanwhile
-- was looked up before its queue is noted, so it is live when it is looked up, and until the walk has ended its ending looks in any case.
create or replace function millpond.prune_links(p_now bigint) returns void
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
  v_first    constant uuid := '00000000-0000-0000-0000-000000000000';
  v_most     constant integer := 500;
  v_parents  uuid[];
  v_children uuid[];
  v_open     uuid[];
  v_gone     uuid[];
  v_kept     uuid[];
  v_segment  smallint;
  at         millpond.link_walk;
begin
  if not exists (select from millpond.children) and not exists (select from millpond.links)
    and not exists (select from millpond.parents where queue in (0, -1)) then return; end if;
  -- Two at once would each go a part of the way.
  if not pg_try_advisory_xact_lock(hashtext('millpond prune'), 0) then return; end if;
  select * into at from millpond.link_walk limit 1;
  if not found then insert into millpond.link_walk (next_at) values (0) returning * into at; end if;
  -- A later time is that of a clock that went back.
  if at.next_at - p_now between 1 and 60000 then return; end if;
  if at.parent is null and at.child is null then
    update millpond.parents set queue = -1 where ctid = any (array(
      select ctid from millpond.parents where queue = 0 for no key update skip locked));
    update millpond.link_walk set began_at = p_now;
  end if;
  v_parents := array(select parent from millpond.links where parent > coalesce(at.parent, v_first) order by parent limit v_most);
  v_children := array(select id from millpond.children where id > coalesce(at.child, v_first) order by id limit v_most);
  if exists (select from millpond.parents where queue = -1) then
    v_open := array(select distinct parent from millpond.links where parent = any (v_parents) and is_open);
    v_gone := array(select id from unnest(v_open) as given(id) where not millpond.is_known(id));
    perform millpond.expect_children(array(
      select queue from millpond.waiting where id = any (v_open) union select queue from millpond.running where id = any (v_open)));
    if exists (
      select from millpond.links cross join lateral unnest(coalesce(remaining, links.children)) as child
      join millpond.children on children.id = child
      where links.parent = any (v_gone) and is_open and waits_for > 0 and links.parent = any (after))
    then update millpond.parents set queue = 0 where queue = -1;
    end if;
  end if;
  -- What was kept long enough, but for children that may ask for it, goes where no segment is emptied; and goes with the last of them.
  for v_segment in select segment from millpond.segments where used and not current and segment between 0 and 7 loop
    perform millpond.keep_for_children(v_segment, millpond.with_live_children(array(
      select done.id from millpond.done join millpond.queues on queues.id = done.queue
      where segment = v_segment and done.id = any (v_parents) and finished_at <= p_now - keep_done)));
  end loop;
  if exists (select from millpond.segments where segment = 8 and used) then
    v_kept := array(select id from millpond.done where segment = 8 and id = any (v_parents) order by random());
    delete from millpond.done where segment = 8 and id = any (array(
      select unnest(v_kept) except select unnest(millpond.with_live_children(v_kept))));
  end if;
  -- A parent that is not there is still awaited, or waits for a sweep, while a link is open.
  perform millpond.forget_links(array(
    select distinct parent from millpond.links where parent = any (v_parents) and not is_open and not millpond.is_known(parent)));
  delete from millpond.children where id = any (v_children) and not is_blocked and not millpond.is_known(id);
  if greatest(cardinality(v_parents), cardinality(v_children)) < v_most then
    delete from millpond.parents where queue = -1;
    update millpond.link_walk set parent = null, child = null, next_at = p_now + 60000, walked_at = began_at;
    update millpond.segments set used = false where segment = 8 and used and not exists (select from millpond.done where segment = 8);
  else
    update millpond.link_walk set parent = coalesce(v_parents[cardinality(v_parents)], parent),
      child = coalesce(v_children[cardinality(v_children)], child), next_at = p_now;
  end if;
end $$;
