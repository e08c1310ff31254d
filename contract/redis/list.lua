-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include described.lua
-- list: one queue partition's jobs in one state, a page at a time.
-- KEYS: queue jobs states scheduled running pages waiting done dead cancelled results progress errors
-- Head: state, limit, after. after: nil: from the first; else where the last job of the page before stood: [true, priority, place, time],
--      or, if it was in another partition, [false, priority, false, time, ties]: then from the first of a later time (an earlier one for final
--      states), or with ties from the first of that time. The time is when it was pushed, due, when its lease ends, or when it finished.
-- In:  that job's id, if it was in this partition. It need not be there any more.
-- Out: [left, item...]: eleven items per job, as in described.lua. left: 1 if the page is shorter than it would be, since jobs are large.
--      Waiting jobs in the order of claiming, scheduled ones soonest first, running ones by lease, final
--      ones newest first.
-- Invariant: a page costs the page and a search, however deep it is.

local K = keys_of('queue jobs states scheduled running pages waiting done dead cancelled results progress errors')
local state, limit, after = HEAD[6], HEAD[7], HEAD[8]
local own = after and ARGV[3]
local out = { 0 }

local function put_all(ids)
  if describe_all(K, out, ids) > 0 then out[1] = 1 end
end

-- The least index from `low` to below `high` at which `past(index)` holds; else `high`.
local function search(low, high, past)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if past(middle) then high = middle else low = middle + 1 end
  end
  return low
end

local function pushed_at(id)
  return facts(redis.call('HGET', K.jobs, id))[2]
end

-- The rank of the page in which jobs beyond `after` begin.
local function rank_after()
  local from, to = scores_of(after[2])
  if after[3] then
    local _, score = page_at(after[2], after[3])
    return redis.call('ZCOUNT', K.waiting, '-inf', '(' .. text(score))
  end
  local low = redis.call('ZCOUNT', K.waiting, '-inf', '(' .. from)
  local high = low + redis.call('ZCOUNT', K.waiting, from, to)
  local found = search(low, high, function(rank)
    local name = redis.call('ZRANGE', K.waiting, rank, rank)[1]
    return pushed_at(string.sub(redis.call('HGET', K.pages, name), 2, ENTRY)) >= after[4]
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
local function beyond(number, entry)
  if after[3] then return number * PAGE + string.byte(entry) > after[3] end
  local pushed = pushed_at(string.sub(entry, 2))
  return pushed > after[4] or after[5] and pushed == after[4]
end

local function list_waiting()
  local rank, ids = after and rank_after() or 0, {}
  while #ids < limit do
    local name = redis.call('ZRANGE', K.waiting, rank, rank)[1]
    if not name then break end
    rank = rank + 1
    local priority, number = string.match(name, '(%d+):(%d+)')
    local bounded = after and tonumber(priority) == after[2]
    for _, entry in ipairs(entries_of(redis.call('HGET', K.pages, name))) do
      if #ids < limit and (not bounded or beyond(tonumber(number), entry)) then ids[#ids + 1] = string.sub(entry, 2) end
    end
  end
  put_all(ids)
end

local function list_done()
  local start = -1
  if after then
    local function finished_at(index) return state_of(K, redis.call('LINDEX', K.done, index))[6] end
    local ties = own or after[5]
    local at = search(0, redis.call('LLEN', K.done), function(index)
      local finished = finished_at(index)
      if ties then return finished > after[4] end
      return finished >= after[4]
    end)
    -- Where the job is gone, so are those that ended before it, except for others of its millisecond.
    while own and at > 0 and redis.call('LINDEX', K.done, at - 1) ~= own and finished_at(at - 1) == after[4] do at = at - 1 end
    start = own and redis.call('LINDEX', K.done, at - 1) == own and at - 2 or at - 1
    if start < 0 then return end
  end
  local page = redis.call('LRANGE', K.done, start >= 0 and math.max(0, start - limit + 1) or -limit, start)
  local ids = {}
  for i = #page, 1, -1 do ids[#ids + 1] = page[i] end
  put_all(ids)
end

local function list_by_time(key)
  local newest_first = state == 'dead' or state == 'cancelled'
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
    return put_all(redis.call(range, key, from, from + limit - 1))
  end
  local bound = (after[5] and '' or '(') .. text(after[4])
  if newest_first then return put_all(redis.call('ZREVRANGEBYSCORE', key, bound, '-inf', 'LIMIT', 0, limit)) end
  put_all(redis.call('ZRANGEBYSCORE', key, bound, '+inf', 'LIMIT', 0, limit))
end

if state == 'waiting' then list_waiting()
elseif state == 'done' then list_done()
else list_by_time(K[state]) end
return out
