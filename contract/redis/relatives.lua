-- @include common.lua
-- @include jobs.lua
-- @include graph.lua
-- relatives: which jobs wait, or waited, for which.
-- Head: limit: most parents and most children of each.
-- In:  ids.
-- Out: per id: nil: unknown; else [queue, state, runs, more, parents, children]. runs: 1 if onDead is `run`; more: 1 if there are more
--      parents or children; parents, children: ids by id, one after the other. None of the last ones if there are many links: send those
--      again.
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
    one = { queue_of(record), state[1], runs, more, first(parents), first(children) }
  end
  read = read + 1
  out[i - 2] = one
end
return out
