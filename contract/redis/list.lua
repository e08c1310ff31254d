-- @include common.lua
-- @include jobs.lua
-- @include described.lua
-- list: one queue partition's jobs in one state, a page at a time.
-- KEYS: queue jobs states scheduled running returned done dead cancelled results progress errors fresh
-- In:  [now, bell, state's letter, limit, after]. after: false: from the first; else what the last job of the page before stands at, [id,
--      priority, place, time], or, of a job in another partition, [false, priority, false, time]: then from the first of a
--      later time (an earlier one for final states), or with a fifth item true from the first of that time. The time is when it was pushed, due, when its lease ends, or
--      when it finished.
-- Out: a list of what `described` gives. Waiting jobs in the order of claiming, scheduled ones soonest first, running ones by lease, final
--      ones newest first.
-- Invariant: a page costs the page and a search, however deep it is.

local K = {
  queue = KEYS[1], jobs = KEYS[2], states = KEYS[3], running = KEYS[5], results = KEYS[10], progress = KEYS[11],
  errors = KEYS[12],
}
local RETURNED, DONE = KEYS[6], KEYS[7]
local BY_TIME = { s = KEYS[4], r = K.running, x = KEYS[8], c = KEYS[9] }
local function fresh(priority) return KEYS[13 + priority] end

local input = cmsgpack.unpack(ARGV[1])
local letter, limit, after = input[3], input[4], input[5]
local extras, out = extras_of(K), {}

local function put(id, record, state)
  out[#out + 1] = described(K, id, record, state, extras)
end

-- The first index of the list at which `past(value)` holds; `value_at` gives that of the first real job from an index on, and its index.
local function search(key, value_at, past)
  local low, high = 0, redis.call('LLEN', key)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local value, at = value_at(middle, high)
    if value == nil or past(value) then high = middle else low = at + 1 end
  end
  return low
end

-- Place and time of the first job from an index on that is no hole.
local function solid(key, from, high)
  for start = from, high - 1, 64 do
    local ids, records = fresh_jobs(K, redis.call('LRANGE', key, start, math.min(start + 63, high - 1)))
    local states = hmget(K.states, ids)
    for i = 1, #ids do
      if not states[i] then
        local place, pushed = facts(records[i])
        return { place, pushed }, start + i - 1
      end
    end
  end
end

-- Whether a job at this place, pushed at that time, is on the page.
local function beyond(place, time)
  if after[3] then return place > after[3] end
  return time > after[4] or after[5] and time == after[4]
end

local function list_waiting(priority, bounded)
  local key = fresh(priority)
  local at = 0
  if bounded then
    at = search(key, function(from, high) return solid(key, from, high) end, function(it) return beyond(it[1], it[2]) end)
  end
  local from = score(priority, bounded and after[3] and after[3] + 1 or 0)
  local to = '(' .. string.format('%.17g', score(priority - 1, 0))
  local ids, records, i, back, j, seen = {}, {}, 1, {}, 1, 0
  while #out < limit do
    if i > #ids then
      ids, records = fresh_jobs(K, redis.call('LRANGE', key, at, at + 63))
      at, i = at + #ids, 1
    end
    if j > #back then
      back = redis.call('ZRANGEBYSCORE', RETURNED, from, to, 'WITHSCORES', 'LIMIT', seen, 64)
      seen, j = seen + #back / 2, 1
    end
    local id, again = ids[i], back[j]
    if not id and not again then return end
    local record = records[i]
    local hole = id and redis.call('HEXISTS', K.states, id) == 1
    if hole then
      i = i + 1
    elseif id and (not again or facts(record) < back[j + 1] - score(priority, 0)) then
      put(id, record, false)
      i = i + 1
    else
      record = record_of(K, again)
      local place, pushed = facts(record)
      if not bounded or beyond(place, pushed) then put(again, record, redis.call('HGET', K.states, again)) end
      j = j + 2
    end
  end
end

local function put_all(ids)
  local records, states = records_of(K, ids), hmget(K.states, ids)
  for i = 1, #ids do put(ids[i], records[i], states[i]) end
end

local function list_done()
  local start = -1
  if after then
    local function finished_at(from)
      local _, _, _, _, _, _, finished = decode(redis.call('HGET', K.states, redis.call('LINDEX', DONE, from)))
      return finished, from
    end
    local time, ties = after[4], after[1] or after[5]
    local at = search(DONE, finished_at, function(finished)
      if ties then return finished > time end
      return finished >= time
    end)
    while after[1] and at > 0 and redis.call('LINDEX', DONE, at - 1) ~= after[1] do at = at - 1 end
    start = (after[1] and at - 2 or at - 1)
    if start < 0 then return end
  end
  local page = redis.call('LRANGE', DONE, start >= 0 and math.max(0, start - limit + 1) or -limit, start)
  local ids = {}
  for i = #page, 1, -1 do ids[#ids + 1] = page[i] end
  put_all(ids)
end

local function list_by_time(key)
  local newest_first = letter == 'x' or letter == 'c'
  if not after or after[1] then
    local rank = after and redis.call(newest_first and 'ZREVRANK' or 'ZRANK', key, after[1])
    if after and not rank then return end
    local from = rank and rank + 1 or 0
    return put_all(redis.call(newest_first and 'ZREVRANGE' or 'ZRANGE', key, from, from + limit - 1))
  end
  local bound = (after[5] and '' or '(') .. string.format('%.17g', after[4])
  if newest_first then return put_all(redis.call('ZREVRANGEBYSCORE', key, bound, '-inf', 'LIMIT', 0, limit)) end
  put_all(redis.call('ZRANGEBYSCORE', key, bound, '+inf', 'LIMIT', 0, limit))
end

if letter == 'w' then
  for priority = after and after[2] or 9, 0, -1 do
    if #out < limit then list_waiting(priority, after and priority == after[2]) end
  end
elseif letter == 'd' then
  list_done()
else
  list_by_time(BY_TIME[letter])
end
return list_of(#out) .. table.concat(out)
