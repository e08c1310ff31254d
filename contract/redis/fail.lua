-- @include common.lua
-- @include jobs.lua
-- @include endings.lua
-- fail: claims' attempts failed.
-- KEYS: queue jobs states keys scheduled running returned dead results progress errors
-- In:  [now, bell, again, items], four items per claim: id, fence, error as MessagePack, delay (ms until the next attempt; false: none).
--      `again`: the same call may have taken effect before; what the job's state then says of this very claim is the answer.
-- Out: a list with, per claim, 0: retry, 1: stale or 2: dead.
-- Invariant: dead when there is no delay or no attempt left.

local K = {
  queue = KEYS[1], jobs = KEYS[2], states = KEYS[3], keys = KEYS[4], scheduled = KEYS[5], running = KEYS[6],
  returned = KEYS[7], dead = KEYS[8], results = KEYS[9], progress = KEYS[10], errors = KEYS[11],
}
local input = cmsgpack.unpack(ARGV[1])
local now, bell, again, items = clock(input[1]), input[2], input[3], input[4]
local count = #items / 4
local outcomes, finished, ready = {}, {}, false

local function settle(id, fence, failure, delay)
  local state = redis.call('HGET', K.states, id)
  if not state then return '\1' end
  local letter, flags, held, attempt, due, started, _, worker = decode(state)
  if held ~= fence then return '\1' end
  if letter ~= 'r' then
    if not again then return '\1' end
    return letter == 'x' and '\2' or (letter == 'w' or letter == 's') and '\0' or '\1'
  end
  local record = record_of(K, id)
  local place, _, priority, attempts = facts(record)
  redis.call('ZREM', K.running, id)
  if not delay or attempt >= attempts then
    unkey(K, id, flags, record)
    finished[#finished + 1] = id
    if keep(K, 'x') == 0 then
      forget(K, { id }, { state })
    else
      redis.call('HSET', K.errors, id, failure)
      redis.call('HSET', K.states, id, encode('x', flags, fence, attempt, due, started, now, worker))
      redis.call('ZADD', K.dead, now, id)
    end
    return '\2'
  end
  due = math.min(now + delay, SPAN - 1)
  redis.call('HSET', K.errors, id, failure)
  redis.call('HSET', K.states, id, encode(delay > 0 and 's' or 'w', flags, fence, attempt, due, started, 0, worker))
  if delay > 0 then
    redis.call('ZADD', K.scheduled, due, id)
  else
    redis.call('ZADD', K.returned, score(priority, place), id)
    ready = true
  end
  return '\0'
end

for i = 1, count do
  outcomes[i] = settle(items[i * 4 - 3], items[i * 4 - 2], items[i * 4 - 1], items[i * 4])
end
if ready then woken(K, bell, now) end
finished_bell(K, bell, now, finished)
return list_of(count) .. table.concat(outcomes)
