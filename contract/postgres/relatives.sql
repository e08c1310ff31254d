-- relatives: which jobs wait, or waited, for which.
-- In:  ids; limit: most parents and most children of each.
-- Out: JSON list, in step: queue, state, onDead, parents and children (ids, in their order), more; null: unknown. Of a blocked job also
--      parents that are not known: those of a restored job come yet.

create or replace function millpond.relatives(ids uuid[], "limit" integer) returns json
language plpgsql stable security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  v_limit constant integer := relatives."limit";
begin
  return (
    select json_agg(case when job.state is not null then json_build_object(
      'queue', job.queue, 'state', job.state,
      'onDead', case when job.state = 'blocked' then own.on_dead else 'cancel' end,
      'parents', parents.ids[1:v_limit], 'children', known.ids[1:v_limit],
      'more', greatest(cardinality(parents.ids), cardinality(known.ids)) > v_limit) end order by given.nth)
    from unnest(relatives.ids) with ordinality as given(id, nth)
    left join lateral (
      select (select name from queues where queues.id = known.queue) as queue, state, place
      from all_jobs as known where known.id = given.id offset 0
    ) as job on true
    -- Not that of a job with this id that is gone.
    left join children as own on own.id = given.id and own.place = job.place
    cross join lateral (
      select array(
        select id from unnest(own.after) as parent(id) where job.state = 'blocked' or is_known(id) order by id limit v_limit + 1) as ids
    ) as parents cross join lateral (
      select array(
        select distinct children.id from links cross join lateral unnest(links.children) as child join children on children.id = child
        where links.parent = given.id
          and exists (select from all_jobs as known where known.id = children.id and known.place = children.place offset 0)
        order by 1 limit v_limit + 1) as ids
    ) as known);
end $$;
