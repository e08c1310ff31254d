-- @include common.lua
-- @include jobs.lua
-- @include endings.lua
-- cancel: jobs are not wanted any more.
-- KEYS: queue jobs states keys scheduled running returned cancelled results progress errors
-- In:  [now, bell, ids]
-- Out: a list with, per id, nil: unknown here; 0: done, 1: dead, 2: cancelled already; 3: cancelled while it waited or was
--      scheduled, 4: while it ran.
-- Invariant: final states do not change. The fence stays, so the worker's next operation on the job is stale.

local K = {
  queue = KEYS[1], jobs = KEYS[2], states = KEYS[3], keys = KEYS[4], scheduled = KEYS[5], running = KEYS[6],
  returned = KEYS[7], cancelled = KEYS[8], results = KEYS[9], progress = KEYS[10], errors = KEYS[11],
}
local input = cmsgpack.unpack(ARGV[1])
local now, bell, ids = clock(input[1]), input[2], input[3]
local FINAL = { d = '\0', x = '\1', c = '\2' }
local outcomes, ended, stopped, room = {}, {}, {}, false

local function cancel(id)
  local record = record_of(K, id)
  if not record then return NIL end
  local state = redis.call('HGET', K.states, id)
  local letter, flags, fence, attempt, due, started, _, worker
  redis.call('HDEL', K.queue, '')
  if state then
    letter, flags, fence, attempt, due, started, _, worker = decode(state)
  else
    letter, flags, fence, attempt, due, started, worker = 'w', HOLE, 0, 0, 0, 0, ''
    if is_keyed(record) then flags = HOLE + KEYED end
    redis.call('HINCRBY', K.queue, 'holes', 1)
  end
  if FINAL[letter] then return FINAL[letter] end
  unkey(K, id, flags, record)
  if letter == 's' then redis.call('ZREM', K.scheduled, id)
  elseif letter == 'r' then redis.call('ZREM', K.running, id)
  elseif state then redis.call('ZREM', K.returned, id) end
  local after = encode('c', flags, fence, attempt, due, started, now, worker)
  ended[#ended + 1] = id
  if keep(K, 'c') == 0 then
    forget(K, { id }, { after })
  else
    redis.call('HSET', K.states, id, after)
    redis.call('ZADD', K.cancelled, now, id)
  end
  if letter == 'r' then
    stopped[#stopped + 1] = id
    return '\4'
  end
  room = true
  return '\3'
end

for i = 1, #ids do outcomes[i] = cancel(ids[i]) end
if #stopped > 0 then ring(bell, 'cancelled', stopped) end
if room then roomy(K, bell, now) end
finished_bell(K, bell, now, ended)
return list_of(#ids) .. table.concat(outcomes)
