-- @include common.lua
-- @include run.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include graph.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- @include settle.lua
-- remove: jobs go, as if they had never been pushed; without ids, those of a queue, and at last the queue itself.
-- Head: states, limit: of the queue, up to so many jobs of these states, one state after the other, each in the order of `list`. whole: the
--       queue goes as well, once it has no jobs. nil: jobs by their ids.
-- In:  ids, or nothing.
-- Out: of ids, per job: 0: unknown; 1: it was finished; else a list [how, queue]: 2: it waited, was scheduled or blocked, 3: it ran. None
--      of
--      the last ones if the jobs are large: send those again. Of a queue [removed, more, stopped]: how many; 1: there may be more; 1: one
--      of
--      them was not finished.
-- Invariant: jobs of the same ids may be pushed again: their fences are above those that were given out.

local NEWEST_FIRST = { done = true, dead = true, cancelled = true }
local wanted, limit, whole = HEAD[5], HEAD[6], HEAD[7]

local function remove(id)
  local record = visit(id)
  if not record then return 0 end
  return remove_one(id, state_of(id) or NEW_STATE, (facts(record)))
end

local function first_of(state, count)
  if state == 'waiting' then return first_waiting(0, count) end
  return redis.call(NEWEST_FIRST[state] and 'ZREVRANGE' or 'ZRANGE', set_of(state), 0, count - 1)
end

-- The queue has no jobs any more.
local function drop_queue()
  local floor = tonumber(string.sub(redis.call('HGET', K.queue, 'run') or '', 33)) or 0
  floor = math.max(floor, tonumber(redis.call('GET', K.floor) or 0), fresh_floor())
  local marks = redis.call('HMGET', K.queue, 'asleep', 'asleepBy')
  redis.call('SREM', K.queues, QUEUE)
  redis.call('HDEL', K.claimed, QUEUE)
  redis.call('ZREM', K.due, QUEUE)
  redis.call('ZREM', K.ends, QUEUE)
  for name in string.gmatch(
    'pages waiting keys remembered scheduled running done dead cancelled awaiting kept keptFrom claims histograms queue limits lines slots '
      .. 'groups names touched tickets held blocked unused', '%S+') do redis.call('UNLINK', K[name]) end
  redis.call('SET', K.floor, text(floor))
  -- A process that sleeps hears of the first job of a queue that has its name.
  if recent(marks[1]) then
    redis.call('HSET', K.queue, 'asleep', marks[1], 'asleepBy', marks[2])
    redis.call('PEXPIRE', K.queue, 2 * RECENT)
  end
end

if not wanted then
  local outcomes = {}
  for i = 3, #ARGV do
    if read_bytes >= LARGE then break end
    local outcome = remove(ARGV[i])
    outcomes[i - 2] = outcome > 1 and { outcome, QUEUE } or outcome
  end
  settle()
  flush()
  raise_floors()
  return outcomes
end

know()
local removed, more, stopped = 0, 0, 0
if whole then wanted[#wanted + 1] = 'kept' end
for _, state in ipairs(wanted) do
  local ids = first_of(state, limit - removed)
  for _, id in ipairs(ids) do
    if read_bytes >= LARGE then break end
    if remove(id) > 1 then stopped = 1 end
    removed = removed + 1
  end
  if removed >= limit or read_bytes >= LARGE then
    more = 1
    break
  end
end
settle()
flush()
raise_floors()
at(HEAD[4])
if whole and more == 0 and redis.call('HEXISTS', K.queue, 'listed') == 1 then drop_queue() end
return { removed, more, stopped }
