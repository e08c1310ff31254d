-- @include common.lua
-- @include jobs.lua
-- @include graph.lua
-- relatives: which jobs wait, or waited, for which.
-- Head: limit: most parents and most children of each.
-- In:  ids.
-- Out: per id: nil: unknown; else [queue, state, runs, more, parents, children, gone]. runs: 1 if onDead is `run`; more: 1 if there are
--      more parents or children; parents, children, gone: ids by id, one after the other. None of the last ones if there are many
--      links: send those again.
-- Invariant: changes nothing. Reads what it answers.

local MOST = 5000 -- links that one call reads, about
local limit = HEAD[5]
local out, read = {}, 0

-- Lua's own comparison goes by the server's locale.
local function is_before(a, b)
  for i = 1, 16 do
    local one, other = string.byte(a, i), string.byte(b, i)
    if one ~= other then return one < other end
  end
  return false
end

-- Closed links and open ones, both in the order of the children.
local function children_of(id)
  local closed, open = linked('c', id, limit + 1), linked('o', id, limit + 1)
  if #open == 0 then return closed elseif #closed == 0 then return open end
  local all, i, j = {}, 1, 1
  while closed[i] or open[j] do
    if not open[j] or closed[i] and is_before(closed[i], open[j]) then
      all[#all + 1], i = closed[i], i + 1
    else
      all[#all + 1], j = open[j], j + 1
    end
  end
  return all
end

-- The first of the parents: those that are there, or may come yet, and those that are gone. A job that has the id of one now is another.
local function part(child, ids)
  local some, there, gone = {}, {}, {}
  for i = 1, math.min(limit, #ids) do some[i] = ids[i] end
  for i, state in ipairs(hmget(K.states, some)) do
    local id = some[i]
    local is_there = redis.call('ZSCORE', K.links, 'o' .. id .. child)
      or redis.call('ZSCORE', K.links, 'c' .. id .. child) and (state or redis.call('HEXISTS', K.jobs, id) == 1)
    if is_there then there[#there + 1] = id else gone[#gone + 1] = id end
  end
  return table.concat(there), table.concat(gone)
end

local function first(ids) return table.concat(ids, '', 1, math.min(limit, #ids)) end

for i = 3, #ARGV do
  if read >= MOST then break end
  local id, record, one = ARGV[i], redis.call('HGET', K.jobs, ARGV[i]), false
  if record then
    local parents, children = linked('p', id, limit + 1), children_of(id)
    local state = state_of(id) or NEW_STATE
    local runs = state[1] == 'blocked' and (tonumber(redis.call('HGET', K.waits, id)) or 0) % 2 or 0
    local more = (#parents > limit or #children > limit) and 1 or 0
    read = read + #parents + #children
    local there, gone = part(id, parents)
    one = { queue_of(record), state[1], runs, more, there, first(children), gone }
  end
  read = read + 1
  out[i - 2] = one
end
return out
