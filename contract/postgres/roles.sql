-- roles: who may call what. Nobody but the owner may do anything until allowed; tables are never touched directly.
-- In:  role; duty: `producer` pushes and configures queues, `worker` does everything that libraries do, `reader` reads the view jobs.
--      select millpond.allow('app', 'worker')

-- Where the schema is. A dump that is restored elsewhere brings `meta` along.
create or replace function millpond.here() returns text
language sql stable as $$
  select system_identifier || '/' || (select oid from pg_database where datname = current_database()) from pg_control_system()
$$;

-- install: null in a restored copy that nobody has adopted yet. Every library calls this when it opens the store, and `adopt` where it is null.
create or replace function millpond.installed() returns json
language sql stable security definer set search_path = millpond, pg_temp as $$
  select json_build_object('version', version, 'operations', operations, 'install', case when home = millpond.here() then install end) from meta
$$;

-- A copy is a store of its own. Whoever held jobs when it was made may still work on them there: no fence of theirs is given out again.
create or replace function millpond.adopt() returns void
language plpgsql security definer set search_path = millpond, pg_temp as $$
begin
  update meta set install = gen_random_uuid(), home = millpond.here() where home <> millpond.here();
  if found then
    delete from unharmed;
    -- The marks of sweeps in a dump are younger than its jobs.
    perform setval('swept_whole', 0);
  end if;
end $$;

create or replace function millpond.allow(role text, duty text) returns void
language plpgsql as $$
declare
  v_routine regprocedure;
begin
  if duty is null or duty not in ('producer', 'worker', 'reader') then
    raise exception 'InvalidOption: a duty is producer, worker or reader' using errcode = '22023';
  end if;
  execute format('grant usage on schema millpond to %I', role);
  if duty = 'reader' then
    execute format('grant select on millpond.jobs, millpond.queues to %I', role);
    return;
  end if;
  for v_routine in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'millpond'::regnamespace and p.prosecdef
      and (duty = 'worker' or p.proname in ('installed', 'adopt', 'push', 'push_list', 'push_jobs', 'configure', 'settings', 'limit_group', 'make_queue'))
  loop
    execute format('grant execute on function %s to %I', v_routine, role);
  end loop;
end $$;

revoke execute on all functions in schema millpond from public;
