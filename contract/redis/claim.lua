-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include run.lua
-- @include grouped.lua
-- @include limits.lua
-- @include backlog.lua
-- @include turns.lua
-- claim: gives waiting jobs to a worker.
-- Head: limit, lease (nil: the queue's), worker, call: a text that no other call of the worker has, latest: the server's time after which
--      nobody
--       waits for the answer (nil: not known), min_priority (nil: 0), per_group (nil: 1).
-- In:  nothing. If the same call took effect before, what it then got and still has is given once more. With limit 0 nothing else
--      is done.
-- Out: [now, lease, retryAfter, more, known], and where it gives jobs [fence, ids, others, record…] behind that.
--      retryAfter: ms until another claim may bring more, or -1. more: 1 if there was more than fits into one answer, 2 if it came
--      too late, so that nothing was done. known: 0 if there is no such queue and none was ever removed, so that the server may have lost
--      it,
--      3 if there is none, 2 if it has a `running`, `rate` or `groupRate` and is not paused, else 1.
--      ids: one after the other. fence: of all jobs that are at their first attempt and due when pushed. others: nothing, or MessagePack of
--      a list with four numbers for each other job: its place among the ids, from 1, fence, attempt, due (0: when pushed). If any job has a
--      journal, MessagePack of another list is behind that: the place of each of those, and how many entries it has.
-- Invariant: the fence grows by one at every claim, and by more at the first one on another run of the server; a job is in one claim at a
--      time; a claim that comes later than `latest` gives nothing new, since nobody would run it.

local limit, lease, worker, call_name, latest, min_priority = HEAD[5], HEAD[6], HEAD[7], HEAD[8], HEAD[9], HEAD[10] or 0
local per_group = HEAD[11] or 1
local settings = redis.call('HMGET', K.queue, 'paused', 'lease', 'asleep', 'asleepBy', 'room', 'run', 'listed', 'limits', 'steps')
lease = lease or tonumber(settings[2]) or DEFAULT.lease
local known = settings[7] and 1 or redis.call('EXISTS', K.floor) == 1 and 3 or 0
local is_late = latest and NOW > latest
if is_late and not AGAIN then return { NOW, lease, -1, 2, known } end

local till = math.min(NOW + lease, SPAN - 1)
local out = { NOW, lease, -1, 0, known }
local got, given, others = 0, {}, {}

local function give(id, record, fence, attempt, due)
  got = got + 1
  given[got], out[8 + got] = id, record
  if fence then
    local at = #others
    others[at + 1], others[at + 2], others[at + 3], others[at + 4] = got, fence, attempt, due
  end
end

-- @return what is to be told of the journals
local function journals()
  local told = {}
  for i, kept in ipairs(hmget(K.journals, given)) do
    local count = kept and cmsgpack.unpack(kept)[1] or 0
    if count > 0 then told[#told + 1], told[#told + 2] = i, count end
  end
  return #told > 0 and cmsgpack.pack(told) or ''
end

local function told(fence)
  if got == 0 then return out end
  local own = settings[9] and journals() or ''
  out[6], out[7], out[8] = fence, table.concat(given), (#others > 0 or own ~= '') and cmsgpack.pack(others) .. own or ''
  return out
end

local function give_again()
  local kept = redis.call('HGET', K.claims, worker)
  if not kept then return end
  local at, list = cmsgpack.unpack_one(kept)
  if list[1] ~= call_name then return end
  local ids, leases = {}, {}
  for i = at + 1, #kept, 16 do ids[#ids + 1] = string.sub(kept, i, i + 15) end
  local states, records = hmget(K.states, ids), hmget(K.jobs, ids)
  for i = 1, #ids do
    local state = states[i] and cmsgpack.unpack(states[i])
    if state and state[1] == 'running' and state[7] == worker then
      give(ids[i], records[i], state[2], state[3], state[4])
      leases[#leases + 1] = text(till)
      leases[#leases + 1] = ids[i]
    end
  end
  if got == 0 then return end
  may_write()
  call('ZADD', K.running, leases)
end
if AGAIN then
  give_again()
  if got > 0 then return told(0) end
  if is_late then return { NOW, lease, -1, 2, known } end
end

local scheduled = redis.call('ZRANGE', K.scheduled, 0, 0, 'WITHSCORES')[2]
local retry_after = scheduled and tonumber(scheduled) < NEVER and math.max(0, scheduled - NOW) or -1

-- Whoever comes next with a job rings for us.
local function mark_asleep()
  local by = settings[4]
  if not recent(settings[3]) then by = ORIGIN elseif by ~= ORIGIN then by = '*' end
  redis.call('HSET', K.queue, 'asleep', NOW, 'asleepBy', by)
  -- Of a queue that is not there nothing stays behind.
  if redis.call('HLEN', K.queue) == 2 then redis.call('PEXPIRE', K.queue, 2 * RECENT) end
end

-- Jobs that were claimed by a clock that has been set back since count as claimed now. Their leases end last, later than one from now on.
local function set_back()
  local last = redis.call('ZREVRANGE', K.running, 0, 0, 'WITHSCORES')[2]
  if not last or tonumber(last) <= NOW + lease + 1000 then return end
  for _, id in ipairs(redis.call('ZREVRANGE', K.running, 0, 99)) do
    local value = redis.call('HGET', K.states, id)
    local at, state = cmsgpack.unpack_one(value)
    local group = at > 0 and string.sub(value, at + 1) or ''
    local ahead = state[5] - NOW
    if ahead <= 1000 then return end
    local ends = tonumber(redis.call('ZSCORE', K.running, id)) - ahead
    state[5] = NOW
    redis.call('HSET', K.states, id, cmsgpack.pack(state) .. group)
    redis.call('ZADD', K.running, text(ends), id)
    note_end(ends)
  end
end

if settings[1] == '1' or limit == 0 then return out end
set_grouped(settings[8])
local grouped = GROUPED
local limits = settings[8] and limits_of(grouped)
if limits then limits.keep_bound() end
if limits and limits.limited and known == 1 then out[5] = 2 end
local any = redis.call('EXISTS', K.waiting) == 1
if not any and not limits then
  may_write()
  mark_asleep()
  set_back()
  redis.call('HDEL', K.claims, worker)
  out[3] = retry_after
  return out
end

may_write()
-- No fence is given out twice. A server that was restarted, or took another's place, may have lost the last claims: it goes on above them,
-- at the present time. So each run begins above all earlier ones, and one that is
-- lost as well, above a snapshot that was restored twice, is no exception. If the clock is behind, the run's own name sets it apart.
local run, kept = server_run(), settings[6] or ''
local floor = tonumber(string.sub(kept, 33)) or 0
if string.sub(kept, 1, 32) ~= run then
  local tenths = fresh_floor()
  if tenths <= floor then tenths = floor + 100000 + tonumber(string.sub(run, 1, 8), 16) end
  floor = tenths
  redis.call('HSET', K.queue, 'run', run .. text(floor))
end

-- Records that are read in one step, and bytes after which the rest is left to another call: large jobs must not hold the server up.
-- How large they are is not known before they are read: the first step is a small one, and the next have room for as many as the largest so
-- far.
local FEW, STEP = 8, 100
local bytes, largest, most = 0, 0, FEW
local read, take, held_for
if limits then read, take, held_for = turns_of(limits, grouped, min_priority, per_group) else read, take = head_of(min_priority) end
local states, leases = {}, {}
local first = cmsgpack.pack({ 'running', floor + 1, 1, 0, NOW, 0, worker })
local till_text = text(till)

while got < limit and bytes < LARGE do
  local want = math.min(limit - got, most)
  local ids, groups = read(want)
  if #ids == 0 then break end
  local records, before = hmget(K.jobs, ids), hmget(K.states, ids)
  for i = 1, #ids do
    local id, record, running = ids[i], records[i], first
    if before[i] then
      local state = cmsgpack.unpack(before[i])
      local fence, attempt = math.max(state[2], floor) + 1, state[3] + 1
      running = cmsgpack.pack({ 'running', fence, attempt, state[4], NOW, 0, worker })
      give(id, record, fence, attempt, state[4])
    else
      give(id, record)
    end
    if groups then running = running .. cmsgpack.pack(groups[i]) end
    states[got * 2 - 1], states[got * 2] = id, running
    leases[got * 2 - 1], leases[got * 2] = till_text, id
    bytes = bytes + #record
    largest = math.max(largest, #record)
  end
  if #ids < want then break end
  most = math.max(1, math.min(STEP, math.floor((LARGE - bytes) / largest)))
end

take()
call('HSET', K.states, states)
call('ZADD', K.running, leases)
if settings[9] then call('HDEL', K.parked, given) end
if got > 0 then
  redis.call('HSET', K.claims, worker, cmsgpack.pack({ call_name, NOW }) .. table.concat(given))
  note_end(till)
else
  redis.call('HDEL', K.claims, worker)
end
if got < limit then
  if bytes >= LARGE then out[4] = 1 else
    mark_asleep()
    set_back()
    local held = held_for and held_for() or -1
    out[3] = (held < 0 or retry_after < 0) and math.max(held, retry_after) or math.min(held, retry_after)
  end
end
if settings[5] then roomy() end
return told(floor + 1)
