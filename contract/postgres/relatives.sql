-- relatives: which jobs wait, or waited, for which.
-- In:  ids; limit: most parents and most children of each.
-- Out: JSON list, in step: queue, state, onDead, parents, gone and children (ids, in their order), more; null: unknown. Among the parents
--      of a blocked job are those that are not known and come yet.

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
      'parents', parents.there, 'gone', parents.gone, 'children', known.ids[1:v_limit],
      'more', greatest(cardinality(own.after), cardinality(known.ids)) > v_limit) end order by given.nth)
    from unnest(relatives.ids) with ordinality as given(id, nth)
    left join lateral (
      select (select name from queues where queues.id = known.queue) as queue, state, place
      from all_jobs as known where known.id = given.id offset 0
    ) as job on true
    -- Not that of a job with this id that is gone.
    left join children as own on own.id = given.id and own.place = job.place
    cross join lateral (
      select coalesce(array_agg(id order by id) filter (where is_there), '{}') as there,
        coalesce(array_agg(id order by id) filter (where not is_there), '{}') as gone
      from (
        select one.id, case when link.is_linked then job.state = 'blocked' and link.is_open or is_known(one.id) else false end as is_there
        from (select id from unnest(own.after) as parent(id) order by id limit v_limit) as one cross join lateral (
          select count(*) > 0 as is_linked, bool_or(is_open and own.id = any (coalesce(remaining, links.children))) as is_open
          from links where links.parent = one.id and own.id = any (links.children)
        ) as link
      ) as each
    ) as parents cross join lateral (
      select array(
        select distinct children.id from links cross join lateral unnest(links.children) as child join children on children.id = child
        -- Not one that has the id of a child that is gone.
        where links.parent = given.id and given.id = any (children.after)
          and exists (select from all_jobs as known where known.id = children.id and known.place = children.place offset 0)
        order by 1 limit v_limit + 1) as ids
    ) as known);
end $$;
