-- listen: bells for other processes. With LISTEN on the schema's name they come as text, kind:queue, with kind work, room, finished or
-- cancelled; `work` only where somebody was noted as asleep by claim.
-- watch: for those who cannot LISTEN. What they compare with what they saw last: all but capacity and paused only grow.
-- Out: JSON per queue: ready, how often a job became waiting; room, how often one left scheduled or waiting; finished, how often one
--      ended; stopped, how often one was cancelled while running.

create or replace function millpond.watch() returns setof json
language plpgsql security definer set search_path = millpond, pg_temp
as $$
#variable_conflict use_column
begin
  return query
    select json_build_object('queue', q.name, 'capacity', q.capacity, 'paused', q.paused,
      'ready', coalesce(sum(m.count) filter (where becomes = 'waiting'), 0),
      'room', coalesce(sum(m.count) filter (where was in ('scheduled', 'waiting') and becomes not in ('scheduled', 'waiting')), 0),
      'finished', coalesce(sum(m.count) filter (where becomes in ('done', 'dead', 'cancelled') or was = 'running' and becomes = 'gone'), 0),
      'stopped', coalesce(sum(m.count) filter (where was = 'running' and becomes = 'cancelled'), 0))
    from queues as q left join (
      select queue, was, becomes, count from totals union all select queue, was, becomes, count from moves
    ) as m on m.queue = q.id group by q.id;
end $$;

create or replace function millpond.ring(kind text, queue text) returns void
language plpgsql security definer set search_path = millpond, pg_temp
as $$
begin
  perform set_config('synchronous_commit', 'off', true);
  perform pg_notify('millpond', ring.kind || ':' || ring.queue);
end $$;
