-- A push of all or none: whether all of its jobs could be stored, before any is. Needs meet.lua, pushes.lua.

-- @return what push-full.lua answers if one could not; nil: all can
local function plan_refusal(ids, links)
  local all_values, which, queues, of = HEAD[5], HEAD[6], HEAD[8], HEAD[9]
  local found, added, is_refused, outcomes = hmget(K.jobs, ids), {}, false, { 0 }
  local stand_ins, rooms, holders = {}, {}, {}

  local function state_of_parent(id)
    id = stand_ins[id] or id
    return added[id] or state_in_pond(id)
  end

  -- @return how a key is met in the call or the pond, and the job
  local function met(key, once)
    local own = holders[QUEUE .. '\0' .. key]
    if own then
      if once and (once[2] or own.follows and once[4]) then return 'replaced', own.id end
      if not own.follows then return 'existing', own.id end
    end
    local holder, is_live = holder_of(key)
    if not holder then return nil end
    if is_live and once then return met_by(key, holder, once) end
    return 'existing', holder
  end

  local function outcome_of(i, id)
    local value, given = all_values[which and which[i] or 1], links and links[i]
    if found[i] and AGAIN and not added[id] then return 0 end
    if found[i] or added[id] then return id end
    local key = value[7]
    local how, holder
    local is_waiting = given and #given[1] > 0
    if key then how, holder = met(key, not is_waiting and value[10]) end
    if holder and is_waiting then return { 'held', holder } end
    if how == 'replaced' then return holder .. 'r' end
    if how == 'existing' then return holder end
    rooms[QUEUE] = rooms[QUEUE] or Q.room
    if rooms[QUEUE] <= 0 then return 1 end
    local state = 'live'
    for _, parent in ipairs(given and ids_in(given[1]) or {}) do
      local its = state_of_parent(parent)
      if not its then return { 'orphan', parent } end
      if its ~= 'live' and its ~= DONE and not given[2] then state = CANCELLED end
    end
    if given and given[3] and state_of_parent(given[3]) ~= 'live' then return { 'orphan', given[3] } end
    added[id] = state
    if state ~= 'live' then return 0 end
    rooms[QUEUE] = rooms[QUEUE] - 1
    if key then holders[QUEUE .. '\0' .. key] = { id = id, follows = how == 'follows' } end
    return 0
  end

  local in_call, may_fail = {}, false
  for i, id in ipairs(ids) do
    enter_queue(queues[of and of[i] or 1])
    local given = links and links[i]
    local key = all_values[which and which[i] or 1][7]
    may_fail = may_fail or Q.room < math.huge or given and (given[3] or key and #given[1] > 0)
    for _, parent in ipairs(not may_fail and given and ids_in(given[1]) or {}) do
      may_fail = may_fail or not in_call[parent]
    end
    in_call[id] = true
  end
  if not may_fail then return nil end
  for i, id in ipairs(ids) do
    enter_queue(queues[of and of[i] or 1])
    local outcome = outcome_of(i, id)
    outcomes[i + 1] = outcome
    if type(outcome) == 'string' then stand_ins[id] = string.sub(outcome, 1, 16) end
    is_refused = is_refused or outcome == 1 or type(outcome) == 'table'
  end
  if not is_refused then return nil end
  outcomes[1] = pushed()
  for i = 2, #outcomes do
    local outcome = outcomes[i]
    if outcome == 0 or type(outcome) == 'string' and (#outcome > 16 or added[outcome]) then outcomes[i] = 'w' end
  end
  return outcomes
end
