-- @include common.lua
-- @include jobs.lua
-- @include described.lua
-- find: all there is to know about jobs.
-- KEYS: queue jobs states running results progress errors
-- In:  [now, bell, ids]
-- Out: a list with, per id, nil: unknown here; else what `described` gives.
-- Invariant: changes no job. Where one is not finished, the queue is marked as watched, for the bell when it is.

local K = {
  queue = KEYS[1], jobs = KEYS[2], states = KEYS[3], running = KEYS[4], results = KEYS[5], progress = KEYS[6],
  errors = KEYS[7],
}
local input = cmsgpack.unpack(ARGV[1])
local now, ids = clock(input[1]), input[3]
local records, states = records_of(K, ids), hmget(K.states, ids)
local extras, out, live = extras_of(K), {}, false

for i = 1, #ids do
  if records[i] then
    out[i] = described(K, ids[i], records[i], states[i], extras)
    local letter = states[i] and string.sub(states[i], 1, 1)
    if letter ~= 'd' and letter ~= 'x' and letter ~= 'c' then live = true end
  else
    out[i] = NIL
  end
end
if live then
  local mark = redis.call('HGET', K.queue, 'watched')
  if not mark or math.abs(now - mark) > 900 then
    redis.call('HDEL', K.queue, '')
    redis.call('HSET', K.queue, 'watched', now)
  end
end
return list_of(#ids) .. table.concat(out)
