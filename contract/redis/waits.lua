-- What scripts share that end the waiting of blocked jobs: graphs.md. It needs the keys of stopping.lua, and awaiting, waits, parents, graphs.
-- The layout of `waits` is told in common.lua.

local OPEN = 18 -- where the open parents begin

-- @return where a parent stands among the open ones; nil: it is not there
local function open_at(value, parent)
  local at = string.find(value, parent, OPEN, true)
  while at and (at - OPEN) % 16 ~= 0 do at = string.find(value, parent, at + 1, true) end
  return at
end

-- A parent has ended so. @return what the child waits for after that; nil: it did not wait for this parent
local function close_link(K, id, parent, state)
  local value = redis.call('HGET', K.waits, id)
  local kind = value and string.sub(value, 1, 1)
  local at = (kind == 'c' or kind == 'r') and open_at(value, parent)
  if not at then return nil end
  if kind == 'c' and state ~= DONE then value = 'x' .. string.sub(value, 2, OPEN - 1) .. parent .. state
  else value = string.sub(value, 1, at - 1) .. string.sub(value, at + 16) end
  redis.call('HSET', K.waits, id, value)
  return value
end

local function is_over(value) return #value < OPEN or string.sub(value, 1, 1) == 'x' end

-- Its graph is not decided.
local function is_held(K, value) return redis.call('ZSCORE', K.graphs, string.sub(value, 2, 17)) and true end

local function uuid(id)
  local hex = string.gsub(id, '.', function(byte) return string.format('%02x', string.byte(byte)) end)
  return string.gsub(hex, '^(%x%x%x%x%x%x%x%x)(%x%x%x%x)(%x%x%x%x)(%x%x%x%x)', '%1-%2-%3-%4-')
end

local ENDED = { ['1'] = 'dead', ['2'] = 'cancelled', ['3'] = 'removed' }

-- A job waits for nothing any more. Use: `go_on` each, then `gone_on_all` once. kept: ms for which cancelled jobs are kept.
local released, cancelled_ids, is_later, is_soon = 0, {}, false, false
local function go_on(K, id, value, kept)
  may_write(K)
  local list, state = facts_of(K, id), state_of(K, id)
  if string.sub(value, 1, 1) == 'x' then
    local message = 'The job ' .. uuid(string.sub(value, OPEN, OPEN + 15)) .. ', which it waited for, is ' .. ENDED[string.sub(value, -1)] .. '.'
    cancel_one(K, id, state, list, kept)
    if kept > 0 then redis.call('HSET', K.errors, id, cmsgpack.pack({ 'ParentFailed', 'MillpondError', message })) end
    cancelled_ids[#cancelled_ids + 1] = id
    return
  end
  redis.call('ZREM', K.awaiting, id)
  redis.call('HDEL', K.waits, id)
  released = released + 1
  local due = state[4]
  if due > NOW then
    put_state(K, id, 'scheduled', state[2], state[3], due, state[5], 0, state[7])
    redis.call('ZADD', K.scheduled, text(due), id)
    is_later, is_soon = true, is_soon or due < NOW + SOON
    return
  end
  if state[2] == 0 and redis.call('HEXISTS', K.parents, id) == 0 then redis.call('HDEL', K.states, id)
  else put_state(K, id, 'waiting', state[2], state[3], NOW, state[5], 0, state[7]) end
  enter(list[3], list[1], id, list[5], list[9])
end

local function gone_on_all(K, kept, limits)
  if is_later then note_due(K) end
  local came = entered(K)
  if came or is_soon then wake(K, limits) end
  cancelled_all(K, kept, limits)
end
