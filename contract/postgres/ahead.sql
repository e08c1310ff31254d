-- ahead: how many waiting jobs come before one.
-- In:  id.
-- Out: those of its queue by priority and place, or of its group in a grouped queue; 1,000 at the most. Null: it does not wait.

create or replace function millpond.ahead(id uuid) returns bigint
language plpgsql stable security definer
set search_path = millpond, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
  job waiting%rowtype;
begin
  select * into job from waiting where waiting.id = ahead.id and state = 'waiting';
  if not found then return null; end if;
  if job.line = -1 then
    return (select count(*) from (
      select from generate_series(job.priority, 9) as level(priority) cross join lateral (
        select from waiting
        where queue = job.queue and coalesce("group", '') = coalesce(job."group", '') and state = 'waiting' and line = -1
          and priority = level.priority::smallint
          and place < case when level.priority = job.priority then job.place else 9223372036854775807 end limit 1000
      ) as ready limit 1000) as before);
  end if;
  return (select count(*) from (
    select from lines cross join generate_series(1, 10) as level(nth) cross join lateral (
      select from waiting
      where queue = job.queue and line = lines.line and state = 'waiting' and priority = (10 - level.nth)::smallint
        and place >= lines.places[level.nth]
        -- A bound of the index: as a filter, it would step over all that come behind.
        and place < case when 10 - level.nth = job.priority then job.place else 9223372036854775807 end limit 1000
    ) as ready
    where lines.queue = job.queue and 10 - level.nth >= job.priority limit 1000) as before);
end $$;
