-- settings: all settings of a queue, and who gave them.
-- In:  queue.
-- Out: JSON: values, in effect; code, operator: what each has given; null: there is no such queue.

create or replace function millpond.settings(queue text) returns json
language sql stable security definer set search_path = millpond, pg_temp
as $$
  select json_build_object(
    'values', jsonb_build_object(
      'capacity', q.capacity, 'keepDone', q.keep_done, 'keepDead', q.keep_dead, 'paused', q.paused, 'attempts', q.attempts,
      'backoff', jsonb_build_object('base', q.backoff_base, 'factor', q.backoff_factor, 'max', q.backoff_max, 'jitter', q.backoff_jitter),
      'lease', q.lease, 'timeout', q.timeout) || limits_json(l)::jsonb,
    'code', coalesce(q.code, '{}'), 'operator', coalesce(q.operator, '{}'))
  from queues as q left join limits as l on l.queue = q.id where q.name = settings.queue
$$;
