-- listen: bells for other processes. With LISTEN on the schema's name they come as text, kind:queue, with kind work, room, finished or
-- cancelled; `work` only where somebody was noted as asleep by claim.
-- watch: for those who cannot LISTEN. What they compare with what they saw last: all but capacity and paused only grow.
-- Out: JSON per queue.

create or replace function millpond.watch() returns setof json
language plpgsql security definer set search_path = millpond, pg_temp
as $$
#variable_conflict use_column
begin
  return query
    select json_build_object('queue', q.name, 'capacity', q.capacity, 'paused', q.paused,
      'ready', coalesce(sum(ready), 0), 'room', coalesce(sum(room), 0),
      'finished', coalesce(sum(finished), 0), 'stopped', coalesce(sum(stopped), 0))
    from queues as q left join counts on counts.queue = q.id group by q.id;
end $$;

create or replace function millpond.ring(kind text, queue text) returns void
language plpgsql security definer set search_path = millpond, pg_temp
as $$
begin
  perform set_config('synchronous_commit', 'off', true);
  perform pg_notify('millpond', ring.kind || ':' || ring.queue);
end $$;
