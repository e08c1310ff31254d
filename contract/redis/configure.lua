-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include grouped.lua
-- @include limits.lua
-- @include backlog.lua
-- configure: changes a queue's settings.
-- KEYS: queue jobs states running pages waiting limits lines slots groups names touched @ends
-- Head: nothing further.
-- In:  two items per setting: its name, and its value as MessagePack. nil: capacity, timeout, running, rate, groupRunning and
--      groupRate without limit. A rate is [count, per, burst], or that of several partitions (README.md). pause: ms for which the queue starts no job.
-- Out: [listed]: 0: the partition is not listed. Register the queue once more, and then call `listed`.
-- Invariant: what is not given stays. Not called where nothing is given: a name alone makes no queue. `backoff` is kept as MessagePack of [base, factor, max, jitter], rates
--      as MessagePack as well, the others as text. Jobs that run are counted when the queue becomes a grouped one; those that wait follow (`backlog.lua`).

local K = keys_of('queue jobs states running pages waiting limits lines slots groups names touched @ends')
local LIMITS = { running = true, rate = true, grouped = true, groupRunning = true, groupRate = true }
local limited, grouped, work = false, false, false
may_write(K)
-- Whatever is set, the queue is there, and may be idle.
redis.call('HSET', K.queue, 'set', 1)
redis.call('PERSIST', K.queue)
note_end(K, NOW)
for i = 3, #ARGV, 2 do
  local name, value = ARGV[i], cmsgpack.unpack(ARGV[i + 1])
  if LIMITS[name] then
    work = true
    if value == nil then redis.call('HDEL', K.limits, name)
    else
      limited = true
      grouped = grouped or name ~= 'running' and name ~= 'rate'
      if name ~= 'grouped' then redis.call('HSET', K.limits, name, type(value) == 'table' and ARGV[i + 1] or text(value)) end
    end
  elseif name == 'pause' then
    limited = true
    local was = redis.call('HMGET', K.limits, 'pausedUntil', 'pauseLength')
    local until_time, length = paused_with(tonumber(was[1]) or 0, tonumber(was[2]) or 0, value)
    redis.call('HSET', K.limits, 'pausedUntil', text(until_time), 'pauseLength', text(length))
  elseif name == 'backoff' then
    local is_default = value[1] == 1000 and value[2] == 2 and value[3] == 3600000 and value[4] == 0.5
    if is_default then redis.call('HDEL', K.queue, name) else redis.call('HSET', K.queue, name, ARGV[i + 1]) end
  elseif value == nil then redis.call('HDEL', K.queue, name)
  elseif type(value) == 'boolean' then redis.call('HSET', K.queue, name, value and 1 or 0)
  else redis.call('HSET', K.queue, name, text(value)) end
  if name == 'paused' and not value then work = true end
  if name == 'capacity' then ring('room') end
end
if limited then redis.call('HSETNX', K.queue, 'limits', 'queue') end
local kept = redis.call('HGET', K.queue, 'limits')
if kept == 'groups' then redis.call('HSET', K.limits, 'relook', '-')
elseif grouped then
  local limits = limits_of(K, false)
  make_grouped(K, limits)
  limits.save()
end
if work then ring('work') end
return { redis.call('HEXISTS', K.queue, 'listed') }
