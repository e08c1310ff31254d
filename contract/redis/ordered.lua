-- What scripts that go through the jobs of a state share: the ids of a page. Their head begins: state, limit, after; see list.lua.

local state, limit, after = HEAD[6], HEAD[7], HEAD[8]
local own = after and ARGV[3]
local NEWEST_FIRST = { done = true, dead = true, cancelled = true }

-- The least index from `low` to below `high` at which `past(index)` holds; else `high`.
local function search(low, high, past)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if past(middle) then high = middle else low = middle + 1 end
  end
  return low
end

local function placed_at(K, id)
  local list = facts(redis.call('HGET', K.jobs, id))
  return list[10] or list[2]
end

-- The rank of the page in which jobs beyond `after` begin.
local function rank_after(K)
  local from, to = scores_of(after[2])
  if after[3] then
    local _, score = page_at(after[2], after[3])
    return redis.call('ZCOUNT', K.waiting, '-inf', '(' .. text(score))
  end
  local low = redis.call('ZCOUNT', K.waiting, '-inf', '(' .. from)
  local high = low + redis.call('ZCOUNT', K.waiting, from, to)
  local found = search(low, high, function(rank)
    local name = redis.call('ZRANGE', K.waiting, rank, rank)[1]
    return placed_at(K, string.sub(redis.call('HGET', K.pages, name), 2, ENTRY)) >= after[4]
  end)
  return math.max(low, found - 1)
end

-- As Redis orders members of the same score, which Lua's own comparison need not be.
local function is_before(a, b)
  for i = 1, math.min(#a, #b) do
    local one, other = string.byte(a, i), string.byte(b, i)
    if one ~= other then return one < other end
  end
  return #a < #b
end

-- Of the priority of `after`: whether a job is still to come.
local function beyond(K, number, entry)
  if after[3] then return number * PAGE + string.byte(entry) > after[3] end
  local placed = placed_at(K, string.sub(entry, 2))
  return placed > after[4] or after[5] and placed == after[4]
end

local function further(K)
  return function(priority, number, entry) return priority ~= after[2] or beyond(K, number, entry) end
end

local function list_by_time(key)
  local newest_first = NEWEST_FIRST[state]
  local range = newest_first and 'ZREVRANGE' or 'ZRANGE'
  if not after or own then
    local from = 0
    if own then
      local time = text(after[4])
      local sooner = newest_first and redis.call('ZCOUNT', key, '(' .. time, '+inf') or redis.call('ZCOUNT', key, '-inf', '(' .. time)
      from = search(sooner, sooner + redis.call('ZCOUNT', key, time, time), function(rank)
        local id = redis.call(range, key, rank, rank)[1]
        if newest_first then return is_before(id, own) end
        return is_before(own, id)
      end)
    end
    return redis.call(range, key, from, from + limit - 1)
  end
  local bound = (after[5] and '' or '(') .. text(after[4])
  if newest_first then return redis.call('ZREVRANGEBYSCORE', key, bound, '-inf', 'LIMIT', 0, limit) end
  return redis.call('ZRANGEBYSCORE', key, bound, '+inf', 'LIMIT', 0, limit)
end

local function list_by_place(K)
  local from = 0
  if after and after[3] then
    from = redis.call('ZCOUNT', K.awaiting, '-inf', text(after[3]))
  elseif after then
    from = search(0, redis.call('ZCARD', K.awaiting), function(rank)
      local placed = placed_at(K, redis.call('ZRANGE', K.awaiting, rank, rank)[1])
      return placed > after[4] or after[5] and placed == after[4]
    end)
  end
  return redis.call('ZRANGE', K.awaiting, from, from + limit - 1)
end

-- @return the ids of up to `limit` jobs of the state, from `after` on
local function ids_of_page(K)
  if state == 'waiting' then return first_waiting(K, after and rank_after(K) or 0, limit, after and further(K)) end
  if state == 'blocked' then return list_by_place(K) end
  return list_by_time(K[state])
end
