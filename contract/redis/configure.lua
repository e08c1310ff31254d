-- @include common.lua
-- configure: changes a queue's settings.
-- KEYS: queue @ends
-- Head: nothing further.
-- In:  two items per setting: its name, and its value as MessagePack. nil: capacity and timeout without limit.
-- Out: [listed]: 0: the partition is not listed. Register the queue once more, and then call `listed`.
-- Invariant: what is not given stays. Not called where nothing is given: a name alone makes no queue. `backoff` is kept as MessagePack of [base, factor, max, jitter], the others as text.

local K = keys_of('queue @ends')
may_write(K)
-- Whatever is set, the queue is there, and may be idle.
redis.call('HSET', K.queue, 'set', 1)
redis.call('PERSIST', K.queue)
note_end(K, NOW)
for i = 3, #ARGV, 2 do
  local name, value = ARGV[i], cmsgpack.unpack(ARGV[i + 1])
  if name == 'backoff' then
    local is_default = value[1] == 1000 and value[2] == 2 and value[3] == 3600000 and value[4] == 0.5
    if is_default then redis.call('HDEL', K.queue, name) else redis.call('HSET', K.queue, name, ARGV[i + 1]) end
  elseif value == nil then redis.call('HDEL', K.queue, name)
  elseif type(value) == 'boolean' then redis.call('HSET', K.queue, name, value and 1 or 0)
  else redis.call('HSET', K.queue, name, text(value)) end
  if name == 'paused' and not value then ring('work') end
  if name == 'capacity' then ring('room') end
end
return { redis.call('HEXISTS', K.queue, 'listed') }
