-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include grouped.lua
-- @include limits.lua
-- @include backlog.lua
-- configure: changes a queue's settings.
-- KEYS: queue jobs states running pages waiting limits lines slots groups names touched @ends
-- Head: nothing further.
-- Head: known, code, operator, turn. Each may be nil.
--      code, operator: the texts that the queue's hash is to have, empty for nothing: JSON of what code and an operator have given, in the
--      names and shapes of contract/operations.md. nil: what was given stays.
--      known: the two texts from which the client computed them and the items, joined by a line feed. If others are kept by now, nothing is
--      changed.
--      turn: see `turn_of`. With a turn that is not 0, all settings are given; if the partition has had a later one, nothing is changed.
-- In:  two items per setting: its name, and its value as MessagePack. nil: capacity, timeout, running, rate, groupRunning and
--      groupRate without limit. A rate is [count, per, burst], or that of several partitions (README.md). pause: ms for which the queue
--      starts no job.
-- Out: [listed, turn, paused, grouped, code, operator], the last two only where others are kept than `known` says. listed: 0: the partition
--      is not listed. Register the queue once more, and then call `listed`. turn: the one that the change got, else 0. paused, grouped: 0
--      or 1, as it is now.
-- Invariant: what is not given stays. Not called where nothing is given: a name alone makes no queue. `backoff` is kept as MessagePack of
--      [base, factor, max, jitter], rates as MessagePack as well, the others as text. Jobs that run are counted when the queue becomes a
--      grouped one; those that wait follow (`backlog.lua`).

local K = keys_of('queue jobs states running pages waiting limits lines slots groups names touched @ends')
local LIMITS = { running = true, rate = true, grouped = true, groupRunning = true, groupRate = true }
local limited, grouped, work = false, false, false
local function same(a, b) return a[1] == b[1] and a[2] == b[2] and a[3] == b[3] and a[4] == b[4] end
local known, code, operator, turn = HEAD[6], HEAD[7], HEAD[8], HEAD[9]
local function answer(others)
  local is = redis.call('HMGET', K.queue, 'paused', 'limits')
  local all = { redis.call('HEXISTS', K.queue, 'listed'), turn or 0, is[1] == '1' and 1 or 0, is[2] == 'groups' and 1 or 0 }
  if others then all[5], all[6] = others[1] or '', others[2] or '' end
  return all
end
if known then
  local kept = redis.call('HMGET', K.queue, 'code', 'operator')
  if known ~= (kept[1] or '') .. '\n' .. (kept[2] or '') then return answer(kept) end
end
may_write(K)
if turn then
  turn = turn_of(K, 'turn', turn)
  if not turn then return answer() end
end
redis.call('HSET', K.queue, 'set', 1)
redis.call('PERSIST', K.queue)
if code then
  for name, value in pairs({ code = code, operator = operator }) do
    if value == '' then redis.call('HDEL', K.queue, name) else redis.call('HSET', K.queue, name, value) end
  end
end
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
    local is_default = same(value, DEFAULT.backoff)
    if is_default then redis.call('HDEL', K.queue, name) else redis.call('HSET', K.queue, name, ARGV[i + 1]) end
  elseif value == nil then redis.call('HDEL', K.queue, name)
  elseif type(value) == 'boolean' then redis.call('HSET', K.queue, name, value and 1 or 0)
  else redis.call('HSET', K.queue, name, text(value)) end
  if name == 'paused' and not value then work = true end
  if name == 'capacity' then ring('room') end
  if name == 'keepDone' or name == 'keepDead' then note_end(K, NOW) end
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
return answer()
