-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include described.lua
-- list: one queue partition's jobs in one state, a page at a time.
-- KEYS: queue jobs states scheduled running pages waiting done dead cancelled results progress errors
-- Head: state, limit, after, filter. after: nil: from the first; else where the last job of the page before stood: [true, priority, place,
--      time], or, if it was in another partition, [false, priority, false, time, ties]: then from the first of a later time (an earlier one
--      for final states), or with ties from the first of that time. The time is when it got its place, is due, when its lease ends, or when
--      it finished. filter: nil, or a map, in the names of contract/operations.md.
-- In:  that job's id, if it was in this partition. It need not be there any more.
-- Out: [more, last, item...]: thirteen items per job, as in described.lua. more: 0: the list ends here; 1: it may go on; 2: it goes on, and
--      this was a short look, since jobs are large. last: 1: the last job does not pass the filter, and only tells where the look ended.
--      Waiting jobs in the order of claiming, scheduled ones soonest first, running ones by lease, final ones newest first.
-- Invariant: looks at `limit` jobs at most, and costs them and a search, however deep it is.

local K = keys_of('queue jobs states scheduled running pages waiting done dead cancelled results progress errors')
local state, limit, after, filter = HEAD[6], HEAD[7], HEAD[8], HEAD[9]
local own = after and ARGV[3]
local out = { 0, 0 }

local function error_passes(id)
  local packed = redis.call('HGET', K.errors, id)
  local is_read, failure = pcall(cmsgpack.unpack, packed or '')
  if not packed or not is_read or type(failure) ~= 'table' then return false end
  if filter.errorCode and failure[1] ~= filter.errorCode then return false end
  return not filter.errorText or string.find(failure[3] or '', filter.errorText, 1, true) ~= nil
end

local function passes(id, record)
  local at, list = cmsgpack.unpack_one(record)
  if filter.group and (list[5] or '') ~= filter.group or filter.key and list[7] ~= filter.key then return false end
  if filter.pushedFrom and list[2] < filter.pushedFrom or filter.pushedBefore and list[2] >= filter.pushedBefore then return false end
  if (filter.errorCode or filter.errorText) and not error_passes(id) then return false end
  local JSON = 48
  return not filter.text or string.byte(record, at + 1) == JSON and string.find(record, filter.text, at + 2, true) ~= nil
end

local function put_all(ids)
  local left = describe_all(K, out, ids, filter and passes)
  out[1] = left > 0 and 2 or #ids == limit and 1 or 0
  local last = ids[#ids - left]
  if filter and last and out[#out - 11] ~= last then
    describe(K, out, last, redis.call('HGET', K.jobs, last), redis.call('HGET', K.states, last))
    out[2] = 1
  end
end

-- The least index from `low` to below `high` at which `past(index)` holds; else `high`.
local function search(low, high, past)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if past(middle) then high = middle else low = middle + 1 end
  end
  return low
end

local function placed_at(id)
  local list = facts(redis.call('HGET', K.jobs, id))
  return list[10] or list[2]
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
    return placed_at(string.sub(redis.call('HGET', K.pages, name), 2, ENTRY)) >= after[4]
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
  local placed = placed_at(string.sub(entry, 2))
  return placed > after[4] or after[5] and placed == after[4]
end

local function is_further(priority, number, entry) return priority ~= after[2] or beyond(number, entry) end

local function list_by_time(key)
  local newest_first = state == 'done' or state == 'dead' or state == 'cancelled'
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

if state == 'waiting' then put_all(first_waiting(K, after and rank_after() or 0, limit, after and is_further))
else list_by_time(K[state]) end
return out
