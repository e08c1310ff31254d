-- remove: jobs are unknown from now on, as if they had never been pushed.
-- In:  ids; or queue, limit and a state, null: jobs of all states, and once there are none the queue itself.
-- Out: removed: how many jobs; more: call again; queues: the names of their queues, one per job.
-- Invariant: what a removed job held goes with it: key, slot, its place in a group. No fence is given out twice, even if the id comes back.
--      A push is never lost with its queue: see `remove_queue`.

-- Takes a job out of the table that it is in. state: what it was; null: there is no such job.
create or replace function millpond.take_out(p_id uuid, p_now bigint, out state text, out queue integer, out fence bigint)
language plpgsql as $$
#variable_conflict use_column
declare
  v_segment smallint := -1;
  v_key     text;
  v_waiting millpond.waiting;
  v_job     millpond.running;
begin
  -- A job may be on its way from one table to the next.
  loop
    delete from millpond.waiting where id = p_id returning * into v_waiting;
    if found then v_job := v_waiting;
    else delete from millpond.running where id = p_id returning * into v_job;
    end if;
    if found then
      take_out.state := v_job.state;
      take_out.queue := v_job.queue;
      take_out.fence := v_job.fence;
      if v_job.state = 'waiting' and millpond.is_milestone(v_job.line, v_job.place) then
        perform millpond.advance(v_job.queue, v_job.line > 0);
      end if;
      delete from millpond.children where id = p_id;
      perform millpond.take_leave(v_job, 'gone', 'remove', p_now);
      return;
    end if;
    delete from millpond.retired where id = p_id returning state, queue, fence, key
      into take_out.state, take_out.queue, take_out.fence, v_key;
    if not found then
      delete from millpond.done where id = p_id returning state, queue, fence, segment, key
        into take_out.state, take_out.queue, take_out.fence, v_segment, v_key;
    end if;
    if found then
      delete from millpond.children where id = p_id;
      -- No count has a job that was kept for its children.
      if v_segment < 8 then
        insert into millpond.moves (queue, segment, was, becomes, cause, count)
          values (take_out.queue, v_segment, take_out.state, 'gone', 'remove', 1);
      end if;
      if v_key is not null then
        delete from millpond.keys where queue = take_out.queue and key = v_key and id = p_id and until is not null;
      end if;
      return;
    end if;
    exit when not exists (select from millpond.all_jobs where id = p_id);
  end loop;
end $$;

-- Removes a queue that has no jobs. False: it has some, or somebody is in the way for longer than a moment.
-- Every push, configure and restore holds the lock of `enter` from before it looks for its queue to the end of its transaction. Here it
-- is held alone, so that nobody is in between; who comes then finds no queue, and makes one. All pushes wait meanwhile, hence the short
-- patience.
create or replace function millpond.remove_queue(p_queue integer) returns boolean
language plpgsql as $$
declare
  v_patience constant text := current_setting('lock_timeout');
  v_place    bigint;
begin
  perform set_config('lock_timeout', '100ms', true);
  perform pg_advisory_xact_lock(hashtext('millpond tidy'), 0);
  select last_value into v_place from millpond.place;
  -- The one before, too: somebody may have read the place, and be about to enter.
  perform pg_advisory_xact_lock(hashtext('millpond'), millpond.block_of(v_place - 4096));
  perform pg_advisory_xact_lock(hashtext('millpond'), millpond.block_of(v_place));
  -- Somebody may have entered at an earlier place. If nobody has, nobody raises the place, and who comes from now on waits for us.
  if exists (
      select from pg_locks
      where locktype = 'advisory' and classid = hashtext('millpond')::oid and objsubid = 2 and granted
        -- Null: a prepared transaction's.
        and pid is distinct from pg_backend_pid()
        and database = (select oid from pg_database where datname = current_database()))
    or millpond.block_of(v_place) <> (select millpond.block_of(last_value) from millpond.place)
    -- In one statement: a job that moves is seen in one of them.
    or exists (select from millpond.waiting where queue = p_queue and state = 'waiting')
    or exists (select from millpond.waiting where queue = p_queue and state = 'scheduled')
    or exists (select from millpond.children where queue = p_queue and is_blocked)
    or exists (select from millpond.running where queue = p_queue)
    or exists (select from millpond.retired where queue = p_queue)
    or exists (select from millpond.done where queue = p_queue)
  then raise lock_not_available;
  end if;
  delete from millpond.queues where id = p_queue;
  delete from millpond.lines where queue = p_queue;
  delete from millpond.keys where queue = p_queue;
  delete from millpond.parents where queue = p_queue;
  delete from millpond.limits where queue = p_queue;
  delete from millpond.group_limits where queue = p_queue;
  delete from millpond.turns where queue = p_queue;
  delete from millpond.groups where queue = p_queue;
  delete from millpond.tickets where queue = p_queue;
  delete from millpond.arrivals where queue = p_queue;
  delete from millpond.moves where queue = p_queue;
  delete from millpond.totals where queue = p_queue;
  delete from millpond.histograms where queue = p_queue;
  perform set_config('lock_timeout', v_patience, true);
  return true;
exception when lock_not_available then
  return false;
end $$;

create or replace function millpond.remove(
  ids uuid[] default null, queue text default null, state text default null, "limit" integer default 1000, now bigint default null,
  out removed integer, out more boolean, out queues text[]
) returns record
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_ids   uuid[] := coalesce(remove.ids, '{}');
  v_queue integer;
  v_fence bigint := 0;
  v_bells text[] := '{}';
  v_parents uuid[] := '{}';
  v_state text;
  v_name  text;
  v_limits text;
  v_id    uuid;
  was     record;
begin
  perform read_committed();
  remove.now := hold_time('due', remove.now);
  if remove.ids is null then
    select id into v_queue from millpond.queues where name = remove.queue;
    foreach v_state in array case when remove.state is null then states() else array[remove.state] end loop
      v_ids := v_ids || array(select id from page(v_queue, v_state, remove."limit" - cardinality(v_ids), null, null));
      exit when cardinality(v_ids) >= remove."limit";
    end loop;
    if remove.state is null then
      v_ids := v_ids || array(
        select id from done where segment = 8 and done.queue = v_queue limit remove."limit" - cardinality(v_ids));
    end if;
  end if;
  remove.queues := '{}';
  for v_id in select distinct id from unnest(v_ids) as given(id) order by id loop
    select * into was from take_out(v_id, remove.now);
    continue when was.state is null;
    select name, limits into v_name, v_limits from millpond.queues where id = was.queue;
    remove.queues := remove.queues || v_name;
    v_fence := greatest(v_fence, was.fence);
    if was.state = 'running' then v_bells := v_bells || ('cancelled:' || v_name); end if;
    if was.state in ('blocked', 'scheduled', 'waiting') then v_bells := v_bells || ('room:' || v_name); end if;
    -- The job after it may start now.
    if v_limits is not null and was.state in ('waiting', 'running') then v_bells := v_bells || ('work:' || v_name); end if;
    v_bells := v_bells || ('finished:' || v_name);
    -- One that has ended was settled then.
    if was.state not in ('done', 'dead', 'cancelled') and has_children(was.queue) then v_parents := v_parents || v_id; end if;
  end loop;
  if v_parents <> '{}' then v_bells := v_bells || end_of(v_parents, 'removed', remove.now); end if;
  removed := cardinality(remove.queues);
  more := remove.ids is null and cardinality(v_ids) >= remove."limit";
  -- One more, so that not even `extend` takes an old claim for one of the job that comes back.
  if v_fence > 0 then update meta set removed = v_fence + 1 where removed <= v_fence; end if;
  if v_queue is not null and remove.state is null and not more and not remove_queue(v_queue) then
    more := true;
    -- The transaction that is in the way may last, and pushes wait while this one tries.
    if removed = 0 then perform pg_sleep(0.4); end if;
  end if;
  perform ring_all(v_bells);
end $$;
