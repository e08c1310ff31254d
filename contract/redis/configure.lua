-- @include common.lua
-- configure: changes a queue's settings.
-- KEYS: queue @ends
-- Head: nothing further.
-- In:  two items per setting: its name, and its value as MessagePack. nil: capacity and timeout without limit.
-- Out: nothing.
-- Invariant: what is not given stays. `backoff` is kept as MessagePack of [base, factor, max, jitter], the others as text.

local K = keys_of('queue @ends')
may_write(K)
redis.call('HSET', K.queue, 'configured', 1)
for i = 3, #ARGV, 2 do
  local name, value = ARGV[i], cmsgpack.unpack(ARGV[i + 1])
  if name == 'backoff' then redis.call('HSET', K.queue, name, ARGV[i + 1])
  elseif value == nil then redis.call('HDEL', K.queue, name)
  elseif type(value) == 'boolean' then redis.call('HSET', K.queue, name, value and 1 or 0)
  else redis.call('HSET', K.queue, name, text(value)) end
  if name == 'paused' and not value then ring('work') end
  if name == 'capacity' then ring('room') end
  if name == 'keepDone' or name == 'keepDead' then note_end(K, NOW) end
end
return {}
