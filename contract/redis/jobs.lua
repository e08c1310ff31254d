-- What scripts that look at jobs share: records and states, whose layout is in common.lua.

-- @return [place, pushedAt, priority, attempts, group, timeout, key, trace, …], and how many bytes stand before the data
local function facts(record)
  local size, list = cmsgpack.unpack_one(record, 1 + string.byte(record))
  return list, size
end

local function queue_of(record) return string.sub(record, 2, 1 + string.byte(record)) end

local LARGE = 4194304 -- bytes of records that one call reads, about: large jobs must not hold the server up
local read_bytes = 0

-- @return the record of a job; nil: the pond does not know it. A script that reads many stops at LARGE, and leaves the rest to another call
local function record_of(id)
  local record = redis.call('HGET', K.jobs, id)
  if not record then return nil end
  read_bytes = read_bytes + #record
  return record
end

local function facts_of(id) return (facts(record_of(id))) end

local function uuid(id)
  local hex = string.gsub(id, '.', function(byte) return string.format('%02x', string.byte(byte)) end)
  return string.gsub(hex, '^(%x%x%x%x%x%x%x%x)(%x%x%x%x)(%x%x%x%x)(%x%x%x%x)', '%1-%2-%3-%4-')
end

-- @return the keys of a job's journal: the order of its entries, and these
local function journal_keys(id)
  local name = uuid(id)
  return PREFIX .. 'journal:' .. name, PREFIX .. 'entries:' .. name
end

local function state_of(id)
  local state = redis.call('HGET', K.states, id)
  return state and cmsgpack.unpack(state)
end

local function put_state(id, ...)
  redis.call('HSET', K.states, id, cmsgpack.pack({ ... }))
end

-- What scripts need to know of the queue that they are at, once in a call: how long jobs are kept, whether it has or had
-- limits, and journals.
local function know()
  if Q.keep_done then return end
  local settings = redis.call('HMGET', K.queue, 'keepDone', 'keepDead', 'limits', 'steps')
  Q.keep_done = tonumber(settings[1]) or DEFAULT.keepDone
  Q.keep_dead = tonumber(settings[2]) or DEFAULT.keepDead
  Q.steps = settings[4]
  set_grouped(settings[3])
end

-- Goes to the queue of a job. @return its record; nil: the pond does not know it
local function visit(id)
  local record = record_of(id)
  if not record then return nil end
  at(queue_of(record))
  know()
  return record
end
