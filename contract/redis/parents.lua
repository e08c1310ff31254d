-- What scripts share that deal with what a blocked job waits for: its value in `parents`, whose layout is told in common.lua. It needs the
-- keys of stopping.lua, and awaiting, parents, graphs.

local OPEN = 21 -- where the parents begin, those with an open link first

local function parents_value(kind, graph, open, ids) return struct.pack('>c1c16I3', kind, graph, open) .. ids end

-- @return its kind, its graph, how many links are open
local function parents_head(value) return struct.unpack('>c1c16I3', value) end

-- @return where a parent stands among those with an open link; nil: it is not there
local function open_at(value, parent, open)
  local behind, at = OPEN + open * 16, string.find(value, parent, OPEN, true)
  while at and (at - OPEN) % 16 ~= 0 do at = string.find(value, parent, at + 1, true) end
  return at and at < behind and at or nil
end

local FEW = 16 -- so many parents are looked for one by one, more of them in one pass over all

-- @return where these parents stand among those with an open link, in order
local function open_ats(value, open, ended)
  local found = {}
  if #ended <= FEW then
    for i = 1, #ended do found[#found + 1] = open_at(value, ended[i].parent, open) end
  else
    local wanted = {}
    for i = 1, #ended do wanted[ended[i].parent] = true end
    for at = OPEN, OPEN + open * 16 - 16, 16 do
      if wanted[string.sub(value, at, at + 15)] then found[#found + 1] = at end
    end
  end
  table.sort(found)
  return found
end

-- Parents have ended: a list of parent and state, each parent once. @return what the child waits for after that; nil: it did not wait for
-- any of them
local function close_links(K, id, ended)
  local value = redis.call('HGET', K.parents, id)
  if not value then return nil end
  read_bytes = read_bytes + #value
  local kind, graph, open = parents_head(value)
  local found = open_ats(value, open, ended)
  if #found == 0 then return nil end
  local rest, closed, was_open, from = {}, {}, {}, OPEN
  for i = 1, #found do
    rest[i], closed[i] = string.sub(value, from, found[i] - 1), string.sub(value, found[i], found[i] + 15)
    was_open[closed[i]] = true
    from = found[i] + 16
  end
  rest[#rest + 1] = string.sub(value, from)
  local failed
  for i = 1, kind == 'c' and #ended or 0 do
    if not failed and ended[i].state ~= DONE and was_open[ended[i].parent] then failed = ended[i] end
  end
  if failed then
    local others = table.concat(rest)
    for i = 1, #closed do
      if closed[i] ~= failed.parent then others = others .. closed[i] end
    end
    value = parents_value(tostring(failed.state), graph, 0, failed.parent .. others)
  else
    value = parents_value(kind, graph, open - #found, table.concat(rest) .. table.concat(closed))
  end
  redis.call('HSET', K.parents, id, value)
  return value
end

local function is_over(value)
  local _, _, open = parents_head(value)
  return open == 0
end

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
  local ended = ENDED[string.sub(value, 1, 1)]
  if ended then
    local message = 'The job ' .. uuid(string.sub(value, OPEN, OPEN + 15)) .. ', which it waited for, is ' .. ended .. '.'
    cancel_one(K, id, state, list, kept)
    if kept > 0 then redis.call('HSET', K.errors, id, cmsgpack.pack({ 'ParentFailed', 'MillpondError', message })) end
    cancelled_ids[#cancelled_ids + 1] = id
    return
  end
  redis.call('ZREM', K.awaiting, id)
  released = released + 1
  if #value < OPEN then redis.call('HDEL', K.parents, id) end
  local due = state[4]
  if due > NOW then
    put_state(K, id, 'scheduled', state[2], state[3], due, state[5], 0, state[7])
    redis.call('ZADD', K.scheduled, text(due), id)
    is_later, is_soon = true, is_soon or due < NOW + SOON
    return
  end
  if #value < OPEN and state[2] == 0 then redis.call('HDEL', K.states, id)
  else put_state(K, id, 'waiting', state[2], state[3], NOW, state[5], 0, state[7]) end
  enter(list[3], list[1], id, list[5], list[9])
end

local function gone_on_all(K, kept, limits)
  if is_later then note_due(K) end
  local came = entered(K)
  if came or is_soon then wake(K, limits) end
  cancelled_all(K, kept, limits)
end
