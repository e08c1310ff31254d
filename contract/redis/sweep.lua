-- @include common.lua
-- @include jobs.lua
-- @include endings.lua
-- @include idle.lua
-- sweep: what time alone brings about.
-- KEYS: queue jobs states keys scheduled running returned done dead cancelled results progress errors
-- In:  [now, bell, promote, lose, expire]: at most so many of each; all 0: only look.
-- Out: [due, next, promoted, expired, idle, lost…]. due: whether there is (still) something to do. next: ms until the next scheduled job is due, or
--      nil. idle: no job is left, and each setting is the default; of a queue of which all partitions are that for an hour, see `unregister`.
--      Each lost [id, attempt, dead].
-- Invariant: touches at most that many jobs. Any number of processes may sweep at once.

local K = {
  queue = KEYS[1], jobs = KEYS[2], states = KEYS[3], keys = KEYS[4], scheduled = KEYS[5], running = KEYS[6],
  returned = KEYS[7], done = KEYS[8], dead = KEYS[9], cancelled = KEYS[10], results = KEYS[11], progress = KEYS[12],
  errors = KEYS[13],
}
local input = cmsgpack.unpack(ARGV[1])
local now, bell, promote, lose, expire = clock(input[1]), input[2], input[3], input[4], input[5]
local ready, promoted, expired, lost, finished = false, 0, 0, {}, {}
local keep_done, keep_dead = keep(K, 'd'), keep(K, 'x')

-- Ids up to a time, soonest first.
local function until_time(key, time, limit)
  if limit <= 0 then return {} end
  return redis.call('ZRANGEBYSCORE', key, '-inf', time, 'LIMIT', 0, limit)
end

local function wait(id, place, priority, state)
  redis.call('HSET', K.states, id, state)
  redis.call('ZADD', K.returned, score(priority, place), id)
  ready = true
end

for _, id in ipairs(until_time(K.scheduled, now, promote)) do
  redis.call('ZREM', K.scheduled, id)
  local _, flags, fence, attempt, due, started, _, worker = decode(redis.call('HGET', K.states, id))
  local place, _, priority = facts(record_of(K, id))
  wait(id, place, priority, encode('w', flags, fence, attempt, due, started, 0, worker))
  promoted = promoted + 1
end

local function lost_error(worker)
  local who = ''
  if string.byte(worker) == 0xc4 then
    who = string.sub(worker, 3)
    who = string.gsub(who, '.', function(byte) return string.format('%02x', string.byte(byte)) end)
    who = string.gsub(who, '^(........)(....)(....)(....)(.*)$', '%1-%2-%3-%4-%5')
  elseif worker ~= '' then
    who = cmsgpack.unpack(worker)
  end
  return cmsgpack.pack({ 'LeaseLost', 'MillpondError', 'Worker ' .. who .. ' fell silent.' })
end

for _, id in ipairs(until_time(K.running, now, lose)) do
  redis.call('ZREM', K.running, id)
  local state = redis.call('HGET', K.states, id)
  local _, flags, fence, attempt, due, started, _, worker = decode(state)
  local record = record_of(K, id)
  local place, _, priority, attempts = facts(record)
  local dead = attempt >= attempts
  lost[#lost + 1] = '\147' .. bin(id) .. cmsgpack.pack(attempt) .. (dead and '\195' or '\194')
  if not dead then
    wait(id, place, priority, encode('w', flags, fence, attempt, now, started, 0, worker))
  else
    unkey(K, id, flags, record)
    finished[#finished + 1] = id
    if keep_dead == 0 then
      forget(K, { id }, { state })
    else
      redis.call('HSET', K.errors, id, lost_error(worker))
      redis.call('HSET', K.states, id, encode('x', flags, fence, attempt, due, started, now, worker))
      redis.call('ZADD', K.dead, now, id)
    end
  end
end

-- The done jobs at the head of the list that were kept long enough.
local function done_until(time, limit)
  local ids = {}
  if limit <= 0 then return ids, {} end
  local head = redis.call('LRANGE', K.done, 0, limit - 1)
  local states = hmget(K.states, head)
  for i = 1, #head do
    local _, _, _, _, _, _, at = decode(states[i])
    if at > time then break end
    ids[i] = head[i]
  end
  return ids, states
end

local ids, states = done_until(now - keep_done, expire)
if #ids > 0 then
  redis.call('LTRIM', K.done, #ids, -1)
  forget(K, ids, states)
  expired = #ids
end
for _, key in ipairs({ K.dead, K.cancelled }) do
  ids = until_time(key, now - keep_dead, expire - expired)
  if #ids > 0 then
    call('ZREM', key, ids)
    forget(K, ids, hmget(K.states, ids))
    expired = expired + #ids
  end
end

if ready then woken(K, bell, now) end
finished_bell(K, bell, now, finished)

local soonest = redis.call('ZRANGE', K.scheduled, 0, 0, 'WITHSCORES')
local nxt = soonest[2] and math.max(0, soonest[2] - now)
local due = nxt == 0 or #until_time(K.running, now, 1) > 0 or #done_until(now - keep_done, 1) > 0
  or #until_time(K.dead, now - keep_dead, 1) > 0 or #until_time(K.cancelled, now - keep_dead, 1) > 0
return list_of(5 + #lost) .. (due and '\195' or '\194') .. (nxt and cmsgpack.pack(nxt) or NIL)
  .. cmsgpack.pack(promoted) .. cmsgpack.pack(expired) .. (is_idle(K) and '\195' or '\194') .. table.concat(lost)
