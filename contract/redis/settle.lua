-- What scripts share that end jobs: they settle what the line of graph.lua has. Needs graph.lua, jobs.lua, waiting.lua, endings.lua,
-- once.lua, stopping.lua.

local HOW = { [DEAD] = 'dead', [CANCELLED] = 'cancelled', [REMOVED] = 'removed' }

-- A blocked job is cancelled for its parent.
local function cancel_child(id, state, parent, how)
  local record = visit(id)
  Q.unasked = true
  local message = 'The job ' .. uuid(parent) .. ', which it waited for, is ' .. HOW[how] .. '.'
  cancel_one(id, state, facts(record), cmsgpack.pack({ 'ParentFailed', 'MillpondError', message }))
end

-- A blocked job waits for nothing any more.
local function release_child(id, state)
  local list = facts(visit(id))
  Q.unasked = true
  redis.call('ZREM', K.awaiting, id)
  local due = state[4]
  if due > NOW then
    put_state(id, 'scheduled', state[2], state[3], due, state[5], 0, state[7])
    redis.call('ZADD', K.scheduled, text(due), id)
    Q.moves, Q.soon = true, Q.soon or due < NOW + SOON
    return
  end
  put_state(id, 'waiting', state[2], state[3], NOW, state[5], 0, state[7])
  enter(list[3], list[1], id, list[5], list[9])
end

-- Closes open links of a job that ended. @return how many it has looked at, and what its children cost besides
local function close_links(parent, how, most)
  local children, more = linked('o', parent, most), 0
  if #children == 0 then return 0, 0 end
  local open, closed = {}, {}
  for i, child in ipairs(children) do
    open[i] = 'o' .. parent .. child
    closed[#closed + 1], closed[#closed + 2] = '0', 'c' .. parent .. child
  end
  call('ZREM', K.links, open)
  call('ZADD', K.links, closed)
  local states, values = hmget(K.states, children), hmget(K.waits, children)
  for i, child in ipairs(children) do
    local state, value = states[i] and cmsgpack.unpack(states[i]), tonumber(values[i])
    if state and state[1] == 'blocked' and value and value > 1 then
      if how ~= DONE and value % 2 == 0 then
        cancel_child(child, state, parent, how)
        more = more + CANCELS
      else
        redis.call('HINCRBY', K.waits, child, -2)
        if value < 4 then
          release_child(child, state)
          more = more + RELEASED
        end
      end
    end
  end
  return #children, more
end

local KINDS = { DONE, DEAD, CANCELLED, REMOVED }

local function is_ending(id)
  for _, how in ipairs(KINDS) do
    if redis.call('ZSCORE', K.settling, how .. id) then return true end
  end
  return false
end

local function is_in_line(id) return is_ending(id) or redis.call('ZSCORE', K.settling, 'u' .. id) end

-- Removes links of a job that is gone. @return how many it has looked at
local function drop_links(id, most)
  local gone, parents = {}, linked('p', id, most)
  for _, parent in ipairs(parents) do
    local n = #gone
    gone[n + 1], gone[n + 2], gone[n + 3] = 'p' .. id .. parent, 'o' .. parent .. id, 'c' .. parent .. id
  end
  local count = #gone / 3
  local children = linked('c', id, most - count)
  local live = are_live(children)
  for i, child in ipairs(children) do
    gone[#gone + 1] = 'c' .. id .. child
    -- A live one is told that its parent is gone.
    if not live[i] then gone[#gone + 1] = 'p' .. child .. id end
  end
  count = count + #children
  call('ZREM', K.links, gone)
  -- Parents that the pond never knew are noted in `waits` for their children alone.
  for _, parent in ipairs(parents) do
    if redis.call('HEXISTS', K.jobs, parent) == 0 and #linked('o', parent, 1) == 0 and not is_in_line(parent) then
      redis.call('HDEL', K.waits, parent)
    end
  end
  return count
end

-- What this call has settled, in units of STEP.
local spent = 0

-- Settles an entry as far as that costs so much. @return whether it is settled
local function settle_some(entry, budget)
  local kind, id, count, more = string.sub(entry, 1, 1), string.sub(entry, 2), 0, 0
  if kind == 'u' and is_ending(id) then
    spent = spent + 1
    return false
  end
  local most = math.ceil(budget / (kind == 'u' and 1 or 1 + (kind == DONE and RELEASED or CANCELS)))
  if kind == 'u' then count = drop_links(id, most) else count, more = close_links(id, kind, most) end
  spent = spent + math.max(1, count + more)
  if count == most then return false end
  if kind == 'u' then redis.call('HDEL', K.waits, id) end
  return true
end

local function may_settle() return spent < STEP and read_bytes < LARGE end

-- Settles what this call has ended; what is too much for it joins the line.
local function settle()
  while unsettled[next_unsettled] do
    local entry = unsettled[next_unsettled]
    next_unsettled = next_unsettled + 1
    if not may_settle() or not settle_some(entry, STEP - spent) then join_line(entry) end
  end
end

-- One turn of an entry of the line.
local function take_turn(entry)
  if settle_some(entry, TURN) then redis.call('ZREM', K.settling, entry) else join_line(entry) end
  settle()
end

-- Settles some of the line. @return whether there is more
local function settle_line()
  if not has_waits() then return false end
  while may_settle() do
    local entry = redis.call('ZRANGE', K.settling, 0, 0)[1]
    if not entry then return false end
    take_turn(entry)
  end
  return redis.call('EXISTS', K.settling) == 1
end

-- A job lives again, or is linked anew, of whose earlier end something is left in the line: that is done now.
local function settle_all_of(id)
  if not unsettled[next_unsettled] and not has_line() then return end
  local name = QUEUE
  settle()
  for _, kind in ipairs({ DONE, DEAD, CANCELLED, REMOVED, 'u' }) do
    while redis.call('ZSCORE', K.settling, kind .. id) do take_turn(kind .. id) end
  end
  if name then at(name) end
end
