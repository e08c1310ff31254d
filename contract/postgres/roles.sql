-- roles: who may call what. Nobody but the owner may do anything until allowed; tables are never touched directly.
-- In:  role; duty: `producer` pushes, signals and configures queues, `worker` does everything that libraries do, `reader` reads
--      the view jobs, and entries.
--      select millpond.allow('app', 'worker')

create or replace function millpond.allow(role text, duty text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  v_routine regprocedure;
begin
  if duty is null or duty not in ('producer', 'worker', 'reader') then
    raise exception 'InvalidOption: a duty is producer, worker or reader' using errcode = '22023';
  end if;
  execute format('grant usage on schema millpond to %I', role);
  if duty = 'reader' then
    execute format('grant select on millpond.jobs, millpond.queues to %I', role);
    execute format('grant execute on function millpond.field(text, text[]), millpond.entries(uuid[], bigint[]) to %I', role);
    return;
  end if;
  for v_routine in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'millpond'::regnamespace and p.prosecdef and obj_description(p.oid, 'pg_proc') = 'Part of Millpond.'
      and (duty = 'worker' or p.proname in ('installed', 'adopt', 'push', 'push_list', 'push_jobs', 'push_graph', 'push_graph_list',
        'configure', 'settings', 'limit_group', 'make_queue', 'schedule', 'declare_schedules', 'signal', 'signal_jobs'))
  loop
    execute format('grant execute on function %s to %I', v_routine, role);
  end loop;
end $$;

-- Only what was made just now: the schema may hold an application's functions, too.
do $$
declare
  v_routine regprocedure;
begin
  execute (
    select 'revoke execute on function ' || string_agg(oid::regprocedure::text, ', ') || ' from public'
    from pg_proc where pronamespace = 'millpond'::regnamespace and xmin = pg_current_xact_id()::xid);
  for v_routine in
    select oid from pg_proc where pronamespace = 'millpond'::regnamespace and xmin = pg_current_xact_id()::xid and prosecdef
  loop
    execute format('comment on function %s is %L', v_routine, 'Part of Millpond.');
  end loop;
end $$;
