-- What scripts that go through the jobs of a state share: the ids of a page. Their head begins: state, limit, after; see list.lua.

local state, limit, after = HEAD[5], HEAD[6], HEAD[7]
local last = after and ARGV[3]
local NEWEST_FIRST = { done = true, dead = true, cancelled = true }

-- The least index from `low` to below `high` at which `past(index)` holds; else `high`.
local function search(low, high, past)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if past(middle) then high = middle else low = middle + 1 end
  end
  return low
end

-- The rank of the page in which jobs beyond `after` begin.
local function rank_after()
  local _, score = page_at(after[1], after[2])
  return redis.call('ZCOUNT', K.waiting, '-inf', '(' .. text(score))
end

-- As Redis orders members of the same score, which Lua's own comparison need not be.
local function is_before(a, b)
  for i = 1, math.min(#a, #b) do
    local one, other = string.byte(a, i), string.byte(b, i)
    if one ~= other then return one < other end
  end
  return #a < #b
end

local function further(priority, number, entry)
  return priority ~= after[1] or number * PAGE + string.byte(entry) > after[2]
end

local function list_by_time(key)
  local newest_first, from = NEWEST_FIRST[state], 0
  if after then
    local time = text(after[3])
    local sooner = newest_first and redis.call('ZCOUNT', key, '(' .. time, '+inf') or redis.call('ZCOUNT', key, '-inf', '(' .. time)
    local range = newest_first and 'ZREVRANGE' or 'ZRANGE'
    from = search(sooner, sooner + redis.call('ZCOUNT', key, time, time), function(rank)
      local id = redis.call(range, key, rank, rank)[1]
      if newest_first then return is_before(id, last) end
      return is_before(last, id)
    end)
  end
  return redis.call(newest_first and 'ZREVRANGE' or 'ZRANGE', key, from, from + limit - 1)
end

local function list_by_place()
  local from = after and redis.call('ZCOUNT', K.awaiting, '-inf', text(after[2])) or 0
  return redis.call('ZRANGE', K.awaiting, from, from + limit - 1)
end

-- @return the ids of up to `limit` jobs of the state, from `after` on
local function ids_of_page()
  if state == 'waiting' then return first_waiting(after and rank_after() or 0, limit, after and further) end
  if state == 'blocked' then return list_by_place() end
  return list_by_time(K[state])
end
