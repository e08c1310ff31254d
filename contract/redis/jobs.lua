-- What scripts that look at jobs share: records and states, whose layout is told in common.lua.

-- @return [place, pushedAt, priority, attempts, group, timeout, key, trace], without the data
local function facts(record)
  local _, list = cmsgpack.unpack_one(record)
  return list
end

local LARGE = 4194304 -- bytes of records that one call reads, about: large jobs must not hold the server up
local read_bytes = 0

-- `facts` of a job, whose record is read for it. Whoever reads many stops at LARGE, and leaves the rest to another call.
local function facts_of(K, id)
  local record = redis.call('HGET', K.jobs, id)
  read_bytes = read_bytes + #record
  return facts(record)
end

local function state_of(K, id)
  local state = redis.call('HGET', K.states, id)
  return state and cmsgpack.unpack(state)
end

local function put_state(K, id, ...)
  redis.call('HSET', K.states, id, cmsgpack.pack({ ... }))
end
