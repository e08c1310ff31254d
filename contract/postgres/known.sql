-- known_ids: which ids a push finds taken.

-- Of these ids, those that jobs beyond `waiting` have; null: none. A job moves in one commit, so whoever looks after storing the id
-- misses none. Ids rise with time, so those of a call mostly lie within 16 ms: one look between the least and the greatest hardly ever
-- finds anything, and only where it does each id is looked up. Not so between ids that lie apart, where many dead rows may be.
create or replace function millpond.known_ids(p_ids uuid[]) returns uuid[]
language plpgsql stable as $$
declare
  v_least    uuid := p_ids[1];
  v_greatest uuid := v_least;
  v_apart    boolean;
  v_id       uuid;
  v_segment  smallint;
  v_known    uuid[];
begin
  -- A loop of these takes less than a statement, and nearly always nothing is assigned but the greatest.
  foreach v_id in array p_ids loop
    if v_id > v_greatest then v_greatest := v_id;
    elsif v_id < v_least then v_least := v_id;
    end if;
  end loop;
  v_apart := left(v_least::text, 12) <> left(v_greatest::text, 12);
  if v_apart or exists (select from millpond.running where id between v_least and v_greatest) then
    v_known := array(select id from millpond.running where id = any (p_ids));
  end if;
  if v_apart or exists (select from millpond.retired where id between v_least and v_greatest) then
    v_known := v_known || array(select id from millpond.retired where id = any (p_ids));
  end if;
  -- One segment at a time, so that no other is even opened.
  for v_segment in select segment from millpond.segments where used and (greatest is null or v_least <= greatest) loop
    if v_apart or exists (select from millpond.done where segment = v_segment and id between v_least and v_greatest) then
      v_known := v_known || array(select id from millpond.done where segment = v_segment and id = any (p_ids));
    end if;
  end loop;
  return nullif(v_known, '{}');
end $$;
