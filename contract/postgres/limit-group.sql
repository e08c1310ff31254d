-- limit-group: limits of a group of its own.
-- In:  queue, group (empty: the jobs without one); limits: JSON with running, rate, weight, or null: as all groups of the queue.
-- Out: nothing. The queue is a grouped one from then on.

create or replace function millpond.limit_group(queue text, "group" text, limits jsonb) returns void
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_own    boolean := limit_group.limits is not null and limit_group.limits <> 'null';
  v_rate   rate    := rate_from(limit_group.limits -> 'rate');
  v_queue  integer;
begin
  if limit_group."group" is null or octet_length(limit_group."group") > 255 then
    raise exception 'InvalidName: a group has 1 to 255 bytes' using errcode = '22023';
  end if;
  perform read_committed();
  -- As configure does: until this is over the queue is not removed.
  perform enter(true);
  perform enter_limits(limit_group.queue, '{"grouped": true}');
  v_queue := queue_of(limit_group.queue);
  perform from queues where id = v_queue for no key update;
  perform set_limits(v_queue, '{"grouped": true}');
  delete from group_limits where queue = v_queue and name = limit_group."group";
  if v_own then
    insert into group_limits (queue, name, running, rate, weight)
    values (v_queue, limit_group."group", (limit_group.limits ->> 'running')::integer, v_rate,
      coalesce((limit_group.limits ->> 'weight')::double precision, 1));
  end if;
  insert into arrivals (queue, groups) values (v_queue, array[limit_group."group"]);
  -- Those who cannot LISTEN see that something came.
  insert into moves (queue, segment, was, becomes, cause, count) values (v_queue, -1, 'waiting', 'waiting', 'update', 1);
  perform ring('work', limit_group.queue);
end $$;
