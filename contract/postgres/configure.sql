-- configure: creates a queue or changes its settings.
-- In:  queue; settings: JSON with any of the names and shapes of contract/operations.md, "configure"; by: `code` or `operator`; clear:
--      names of settings that an operator gives back.
-- Out: JSON: names of given settings that an operator's other value keeps out of effect.
-- Of a setting, an operator's value is in effect, else the code's, else the default. What each has given is kept as it was given.
-- Invariant: what is not given stays. With nothing but the queue's name it does nothing: a name alone makes no queue.

create or replace function millpond.configure(queue text, settings jsonb, "by" text default 'code', clear text[] default null) returns json
language plpgsql security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  -- Those that have two sides: see operations.md.
  sided constant text[] := array['capacity', 'keepDone', 'keepDead', 'attempts', 'backoff', 'lease', 'timeout', 'running', 'rate',
    'groupRunning', 'groupRate'];
  defaults constant jsonb := '{"capacity": null, "keepDone": 3600000, "keepDead": 604800000, "attempts": 10, "lease": 30000,
    "timeout": null,
    "backoff": {"base": 1000, "factor": 2, "max": 3600000, "jitter": 0.5}, "running": null, "rate": null,
    "groupRunning": null, "groupRate": null}';
  v_queue      integer;
  v_before     queues%rowtype;
  v_after      queues%rowtype;
  v_name       text;
  v_apply      jsonb := '{}';
  v_limits     jsonb;
  v_overridden text[] := '{}';
begin
  select name into v_name from jsonb_object_keys(configure.settings) as name
    where name <> all (sided || array['paused', 'grouped']) limit 1;
  if found or configure."by" not in ('code', 'operator') then
    raise invalid_parameter_value using message = format('millpond: %s is no setting, or %s is not code or operator', v_name,
      configure."by");
  end if;
  if configure.settings = '{}' and coalesce(cardinality(configure.clear), 0) = 0 then return '[]'; end if;
  -- Until this is over the queue is not removed.
  perform enter(true);
  -- The queue's lock before its row. Which limits come into effect is known only from the row; all that are given or cleared may.
  select jsonb_object_agg(given.name, coalesce(configure.settings -> given.name, q.code -> given.name, 'null')) into v_limits
  from unnest(array['running', 'rate', 'grouped', 'groupRunning', 'groupRate']) as given(name)
  left join queues as q on q.name = configure.queue
  where configure.settings ? given.name or given.name = any (configure.clear) and q.operator ? given.name;
  if v_limits is not null then perform enter_limits(configure.queue, v_limits); end if;
  v_queue := queue_of(configure.queue);
  select * into v_before from queues where id = v_queue for no key update;
  v_after := v_before;
  for v_name in select unnest(configure.clear) loop
    continue when not coalesce(v_after.operator, '{}') ? v_name;
    v_after.operator := v_after.operator - v_name;
    v_apply := v_apply || jsonb_build_object(v_name, coalesce(v_after.code -> v_name, defaults -> v_name));
  end loop;
  for v_name in select jsonb_object_keys(configure.settings) loop
    if v_name <> all (sided) then
      v_apply := v_apply || jsonb_build_object(v_name, configure.settings -> v_name);
    elsif configure."by" = 'operator' then
      v_after.operator := coalesce(v_after.operator, '{}') || jsonb_build_object(v_name, configure.settings -> v_name);
      v_apply := v_apply || jsonb_build_object(v_name, configure.settings -> v_name);
    else
      v_after.code := coalesce(v_after.code, '{}') || jsonb_build_object(v_name, configure.settings -> v_name);
      if not coalesce(v_after.operator, '{}') ? v_name then
        v_apply := v_apply || jsonb_build_object(v_name, configure.settings -> v_name);
      elsif v_after.operator -> v_name <> configure.settings -> v_name then
        v_overridden := v_overridden || v_name;
      end if;
    end if;
  end loop;
  if v_after.operator = '{}' then v_after.operator := null; end if;
  if v_apply ? 'capacity' then v_after.capacity := (v_apply ->> 'capacity')::bigint; end if;
  if v_apply ? 'timeout' then v_after.timeout := (v_apply ->> 'timeout')::bigint; end if;
  v_after.keep_done      := coalesce((v_apply ->> 'keepDone')::bigint, v_before.keep_done);
  v_after.keep_dead      := coalesce((v_apply ->> 'keepDead')::bigint, v_before.keep_dead);
  v_after.paused         := coalesce((v_apply ->> 'paused')::boolean, v_before.paused);
  v_after.attempts       := coalesce((v_apply ->> 'attempts')::integer, v_before.attempts);
  v_after.lease          := coalesce((v_apply ->> 'lease')::bigint, v_before.lease);
  v_after.backoff_base   := coalesce((v_apply #>> '{backoff,base}')::bigint, v_before.backoff_base);
  v_after.backoff_factor := coalesce((v_apply #>> '{backoff,factor}')::double precision, v_before.backoff_factor);
  v_after.backoff_max    := coalesce((v_apply #>> '{backoff,max}')::bigint, v_before.backoff_max);
  v_after.backoff_jitter := coalesce((v_apply #>> '{backoff,jitter}')::double precision, v_before.backoff_jitter);
  -- Every process configures its queues when it begins: mostly nothing changes.
  if v_after is distinct from v_before then
    update queues set capacity = v_after.capacity, keep_done = v_after.keep_done, keep_dead = v_after.keep_dead, paused = v_after.paused,
      attempts = v_after.attempts, timeout = v_after.timeout, lease = v_after.lease, backoff_base = v_after.backoff_base,
      backoff_factor = v_after.backoff_factor, backoff_max = v_after.backoff_max, backoff_jitter = v_after.backoff_jitter,
      code = v_after.code, operator = v_after.operator
    where id = v_queue;
  end if;
  -- What is kept may be due sooner now. All rows: a sweep that is under way may be about to set them.
  if (v_after.keep_done, v_after.keep_dead) is distinct from (v_before.keep_done, v_before.keep_dead) then
    update segments set look_at = null;
  end if;
  select jsonb_object_agg(name, v_apply -> name) into v_limits
  from unnest(array['running', 'rate', 'grouped', 'groupRunning', 'groupRate']) as name where v_apply ? name;
  if v_limits is not null then perform set_limits(v_queue, v_limits); end if;
  -- Any may be what someone waits for: a raised capacity or limit, or the end of a pause.
  if v_apply -> 'paused' = 'false' or v_limits is not null then perform ring('work', configure.queue); end if;
  if v_apply ? 'capacity' then perform ring('room', configure.queue); end if;
  return to_json(array(select name from unnest(v_overridden) as name order by name collate "C"));
end $$;

-- make_queue: a queue comes into being, with default settings.
-- In:  queue. To be called before a push in a transaction that may last: others that push to a queue which that has made wait for its end.
create or replace function millpond.make_queue(queue text) returns void
language plpgsql security definer set search_path = millpond, pg_temp
as $$
begin
  perform enter(true);
  perform queue_of(make_queue.queue);
end $$;
