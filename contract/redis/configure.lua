-- @include common.lua
-- @include version.lua
-- @include run.lua
-- @include new-queue.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include grouped.lua
-- @include limits.lua
-- @include backlog.lua
-- configure: changes a queue's settings.
-- Head: known, code, operator.
--      code, operator: the texts that the queue's hash is to have, empty for nothing: JSON of what code and an operator have given, in the
--      names and shapes of contract/operations.md.
--      known: the two texts from which the client computed them and the items, joined by a line feed. If others are kept by now, nothing is
--      changed.
-- In:  two items per setting: its name, and its value as MessagePack. nil: capacity, timeout, running, rate, groupRunning and
--      groupRate without limit. A rate is [count, per, burst].
-- Out: nothing; or [code, operator]: others are kept than `known` says.
-- Invariant: what is not given stays. Not called where nothing is given: a name alone makes no queue. `backoff` is kept as MessagePack of
--      [base, factor, max, jitter], rates as MessagePack as well, the others as text. Jobs that run are counted when the queue becomes a
--      grouped one; those that wait follow (`backlog.lua`).

local LIMITS = { running = true, rate = true, grouped = true, groupRunning = true, groupRate = true }
local limited, grouped, work = false, false, false
local function same(a, b) return a[1] == b[1] and a[2] == b[2] and a[3] == b[3] and a[4] == b[4] end
local known, code, operator = HEAD[5], HEAD[6], HEAD[7]
local kept = redis.call('HMGET', K.queue, 'code', 'operator', 'listed')
if known ~= (kept[1] or '') .. '\n' .. (kept[2] or '') then return { kept[1] or '', kept[2] or '' } end
may_write()
if not kept[3] then make_queue() end
for name, value in pairs({ code = code, operator = operator }) do
  if value == '' then redis.call('HDEL', K.queue, name) else redis.call('HSET', K.queue, name, value) end
end
know()
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
  elseif name == 'backoff' then
    local is_default = same(value, DEFAULT.backoff)
    if is_default then redis.call('HDEL', K.queue, name) else redis.call('HSET', K.queue, name, ARGV[i + 1]) end
  elseif value == nil then redis.call('HDEL', K.queue, name)
  elseif type(value) == 'boolean' then redis.call('HSET', K.queue, name, value and 1 or 0)
  else redis.call('HSET', K.queue, name, text(value)) end
  if name == 'paused' and not value then work = true end
  if name == 'capacity' then ring('room') end
  if name == 'keepDone' or name == 'keepDead' then note_end(NOW) end
end
if limited then redis.call('HSETNX', K.queue, 'limits', 'queue') end
local kept = redis.call('HGET', K.queue, 'limits')
if kept == 'groups' then redis.call('HSET', K.limits, 'relook', '-')
elseif grouped then
  local limits = limits_of(false)
  make_grouped(limits)
  limits.save()
end
if work then ring('work') end
return {}
