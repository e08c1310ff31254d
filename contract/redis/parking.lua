-- What release.lua does with claims whose jobs wait for something: contract/steps.md, "park". Needs linking.lua, journals.lua.

local LATEST = 3155760000000 -- ms: 36,525 days

-- @return those of the ids whose jobs have not ended, without the job's own
local function live_among(ids, own)
  local live = {}
  for i, packed in ipairs(hmget(K.states, ids)) do
    local is_live
    if ids[i] == own then is_live = false
    elseif packed then is_live = not FINAL[cmsgpack.unpack(packed)[1]]
    else is_live = redis.call('HEXISTS', K.jobs, ids[i]) == 1 end
    if is_live then live[#live + 1] = ids[i] end
  end
  return live
end

-- The job gets open links to these. It has no other one: it was claimed.
local function wait_for(id, parents)
  if redis.call('HEXISTS', K.waits, id) == 1 then
    local closed = {}
    for i, parent in ipairs(parents) do closed[i] = 'c' .. parent .. id end
    call('ZREM', K.links, closed)
  end
  read_bytes = read_bytes + COST * #parents
  link_job(id, { table.concat(parents), true, open = #parents }, {})
  flush_links()
end

-- The claim is over. park: a list, as of the head. first: the place of its first item. lines: for the job's log.
-- @return the outcome
local function park_one(id, state, park, first, lines)
  local until_time, signals, count, reason = park[1] or NOW + LATEST, park[2], park[3], park[4]
  if not redis.call('ZSCORE', K.running, id) then return 1 end
  local plan = plan_entries(id, first + 1, count)
  if not plan then return 2 end
  redis.call('ZREM', K.running, id)
  local list, parents = facts_of(id), {}
  add_log(id, lines)
  add_entries(plan)
  note_parked(plan, reason)
  if GROUPED then free_slot(list[5]) end
  Q.stirs = true
  for at = 1, #ARGV[first], 16 do parents[#parents + 1] = string.sub(ARGV[first], at, at + 15) end
  local live, fence, attempt = live_among(parents, id), state[2], state[3] - 1
  if #live > 0 then
    wait_for(id, live)
    put_state(id, 'blocked', fence, attempt, NOW, 0, 0, false)
    redis.call('ZADD', K.awaiting, text(list[1]), id)
  elseif #parents == 0 and until_time > NOW and plan.kept[2] <= signals then
    put_state(id, 'scheduled', fence, attempt, until_time, 0, 0, false)
    redis.call('ZADD', K.scheduled, text(math.min(until_time, NEVER - 1)), id)
    Q.moves, Q.soon = true, Q.soon or until_time < NOW + SOON
  else
    put_state(id, 'waiting', fence, attempt, NOW, 0, 0, false)
    enter(list[3], list[1], id, list[5], list[9])
  end
  return 0
end
