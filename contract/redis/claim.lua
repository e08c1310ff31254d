-- @include common.lua
-- @include jobs.lua
-- claim: gives waiting jobs to a worker.
-- KEYS: queue jobs states keys running returned fresh
-- In:  [now, bell, again, limit, lease, worker as MessagePack, call: four bytes that no other call of the worker has, run, quiet]. `again`: the same call
--      may have taken effect before; what it then got is given once more. run: the first 16 characters of the server's `run_id`, learnt over
--      the very connection that this call is written to; false: not known so, then the script asks, which takes some 10 µs. quiet: no bell need ring for what is pushed later.
-- Out: [now, more, job…], each job [fence, attempt, due (0: when pushed), name and record]: a byte string of the id's last 6 bytes and the
--      record, with whose first 10 the id begins. `more`: fewer than asked for, because there were too many holes to pass, or bytes to
--      give, at once; ask again. With limit 0: whether a claim might find anything.
-- Invariant: the fence grows by one at every claim, and by more at the first one after a restart or a failover; a job is in one claim at a
--      time; each hole is met once.

local K = { queue = KEYS[1], jobs = KEYS[2], states = KEYS[3], keys = KEYS[4], running = KEYS[5], returned = KEYS[6] }
local function fresh(priority) return KEYS[7 + priority] end

local input = cmsgpack.unpack(ARGV[1])
local now, bell, again, limit, lease = clock(input[1]), input[2], input[3], input[4], input[5]
local worker, this = input[6], input[7]
local settings = redis.call('HMGET', K.queue, 'paused', 'holes', 'asleep', 'asleepBy', 'room', 'run')

-- Whoever comes next with a job rings for us.
local function mark_asleep()
  if input[9] then return end
  local by = settings[4]
  if not recent(settings[3], now) then by = bell[3] elseif by ~= bell[3] then by = '*' end
  redis.call('HSET', K.queue, 'asleep', now, 'asleepBy', by)
  -- Of a queue that is not there nothing stays behind.
  if redis.call('HLEN', K.queue) == 2 then redis.call('PEXPIRE', K.queue, 2 * RECENT) end
end

if settings[1] == '1' then return list_of(2) .. cmsgpack.pack(now) .. '\194' end

if limit == 0 then
  local any = redis.call('EXISTS', K.returned, unpack(KEYS, 7, 16)) > 0
  if not any then
    redis.call('HDEL', K.queue, '')
    mark_asleep()
  end
  return list_of(2) .. cmsgpack.pack(now) .. (any and '\195' or '\194')
end

-- No fence is given up to it. A server that was restarted, or took another's place, may have lost the last claims, which had fences up to some
-- way above those that it knows: it goes on far above, at the time in tenths of a millisecond: no job is claimed more often than that, so that a
-- server that loses this as well begins above it once more. RAISE is for one whose clock is behind.
local kept = settings[6] or ''
local floor, known = tonumber(string.sub(kept, 17)) or 0, string.sub(kept, 1, 16)
if known ~= (not again and input[8] or server_run()) then
  -- Who stated it may be the one that is behind. A queue without a place has had no job.
  local run = server_run()
  if known ~= run and redis.call('HEXISTS', K.queue, 'place') == 1 then
    local time = redis.call('TIME')
    floor = math.max(floor + RAISE, time[1] * 10000 + math.floor(time[2] / 100))
    redis.call('HDEL', K.queue, '')
    redis.call('HSET', K.queue, 'run', run .. string.format('%.0f', floor))
  end
end

local holes = tonumber(settings[2] or 0)
local first = encode('r', 0, floor + 1, 1, 0, now, 0, worker, this)
local first_fence = cmsgpack.pack(floor + 1)
-- Whether any live job has a key.
local keyed = redis.call('EXISTS', K.keys) == 1
local first_keyed = keyed and encode('r', KEYED, floor + 1, 1, 0, now, 0, worker, this)
-- As text: Redis would turn the number into text for every job.
local till = string.format('%.17g', math.min(now + lease, SPAN - 1))
local states, leases, out, got = {}, {}, {}, 0
local looks = limit + 1000
-- Most jobs that are looked at in one step, and bytes after which the rest is left to another call: large jobs must not hold the server up.
-- How large they are is not known before they are read: so the first step is a small one, and the next have room for as many as the
-- largest so far.
local FEW, STEP, LARGE = 8, 100, 4194304
local bytes, largest, most = 0, 0, FEW
-- Of jobs given out that had waited before: where in `states`. Of those whose hole was passed: true.
local placed, passed = {}, {}
-- What stands before a job's record in the answer, at its first claim, by the record's length.
local firsts = {}

local function give(id, name, record, running, numbers)
  local at, length = got * 3, #record
  numbers = numbers or firsts[length]
  if not numbers then
    numbers = '\148' .. first_fence .. '\1\0' .. bin_head(length + 6)
    firsts[length] = numbers
  end
  out[at + 1], out[at + 2], out[at + 3] = numbers, name, record
  at = got * 2
  states[at + 1], states[at + 2] = id, running
  leases[at + 1], leases[at + 2] = till, id
  got = got + 1
  bytes = bytes + length
  if length > largest then largest = length end
end

local function step()
  return math.min(limit - got, looks, most)
end

local function stepped()
  most = largest == 0 and STEP or math.max(1, math.min(STEP, math.floor((LARGE - bytes) / largest)))
end

local function numbers_of(fence, attempt, due, record)
  return '\148' .. cmsgpack.pack(fence) .. cmsgpack.pack(attempt) .. cmsgpack.pack(due) .. bin_head(#record + 6)
end

local function give_again(id, record, state)
  local _, flags, fence, attempt, due = decode(state)
  fence, attempt = math.max(fence, floor) + 1, attempt + 1
  if passed[id] then flags = flags - HOLE end
  placed[id] = got * 2 + 2
  local running = encode('r', flags, fence, attempt, due, now, 0, worker, this)
  give(id, name_of(id), record, running, numbers_of(fence, attempt, due, record))
end

-- The hole of this job leaves the list.
local function pass(id, record, state)
  holes = holes - 1
  redis.call('HINCRBY', K.queue, 'holes', -1)
  passed[id] = true
  if record and #record > largest then largest = #record end
  local letter, flags, fence, attempt, due, started, finished, who = decode(placed[id] and states[placed[id]] or state)
  local call_of = letter == 'r' and string.sub(placed[id] and states[placed[id]] or state, -4)
  local solid = encode(letter, flags - HOLE, fence, attempt, due, started, finished, who, call_of)
  if placed[id] then states[placed[id]] = solid
  elseif letter == 'h' then redis.call('HDEL', K.states, id)
  else redis.call('HSET', K.states, id, solid) end
end

-- From the head of the list, where nothing else waits at this priority.
local function take(key)
  while got < limit and looks > 0 and bytes < LARGE do
    local names = redis.call('LPOP', key, step())
    if not names or #names == 0 then return end
    looks = looks - #names
    local ids, records = fresh_jobs(K, names)
    local found = holes > 0 and hmget(K.states, ids)
    for i = 1, #ids do
      if found and found[i] then pass(ids[i], records[i], found[i])
      else give(ids[i], names[i], records[i], keyed and is_keyed(records[i]) and first_keyed or first) end
    end
    stepped()
  end
end

-- From the heads of the list and of those that came back, by place.
local function merge(key, priority)
  local from, to = score(priority, 0), '(' .. string.format('%.17g', score(priority - 1, 0))
  while got < limit and looks > 0 and bytes < LARGE do
    local want = step()
    local back = redis.call('ZRANGEBYSCORE', K.returned, from, to, 'WITHSCORES', 'LIMIT', 0, want)
    if #back == 0 then return take(key) end
    local names = redis.call('LRANGE', key, 0, want - 1)
    local ids, records = fresh_jobs(K, names)
    local found = holes > 0 and hmget(K.states, ids)
    local back_ids, gone = {}, {}
    for i = 1, #back, 2 do back_ids[#back_ids + 1] = back[i] end
    local back_records, back_states = records_of(K, back_ids), hmget(K.states, back_ids)
    local i, j = 1, 1
    while got < limit and looks > 0 do
      if ids[i] and found and found[i] then
        pass(ids[i], records[i], found[i])
        i = i + 1
      else
        local place = ids[i] and facts(records[i])
        local returned = back_ids[j] and back[j * 2] - from
        -- At the end of what was read of one, what follows there may come before the other's.
        if not place and (#ids == want or not returned) or not returned and #back_ids == want then break end
        if place and (not returned or place < returned) then
          give(ids[i], names[i], records[i], keyed and is_keyed(records[i]) and first_keyed or first)
          i = i + 1
        else
          give_again(back_ids[j], back_records[j], back_states[j])
          gone[#gone + 1] = back_ids[j]
          j = j + 1
        end
      end
      looks = looks - 1
    end
    call('ZREM', K.returned, gone)
    if i > 1 then redis.call('LTRIM', key, i - 1, -1) end
    stepped()
    if #ids < want and #back_ids < want and i > #ids and j > #back_ids then return end
  end
end

local function answer(more)
  return list_of(got + 2) .. cmsgpack.pack(now) .. (more and '\195' or '\194') .. table.concat(out)
end

-- What this very call got before its answer was lost. It looks at all that runs, but then this is rare.
local function repeated()
  local ids = redis.call('ZRANGE', K.running, 0, -1)
  local found = hmget(K.states, ids)
  local order = {}
  for i = 1, #ids do
    local _, _, fence, attempt, due, _, _, who = decode(found[i])
    if who == worker and string.sub(found[i], -4) == this then
      local record = record_of(K, ids[i])
      local place, _, priority = facts(record)
      got = got + 1
      out[got] = numbers_of(fence, attempt, due, record) .. name_of(ids[i]) .. record
      order[out[got]] = score(priority, place)
    end
  end
  table.sort(out, function(a, b) return order[a] < order[b] end)
  return got > 0
end
if again and repeated() then return answer(false) end

redis.call('HDEL', K.queue, '')
local back = redis.call('EXISTS', K.returned) == 1
for priority = 9, 0, -1 do
  if got >= limit or looks <= 0 or bytes >= LARGE then break end
  if back then merge(fresh(priority), priority) else take(fresh(priority)) end
end

call('HSET', K.states, states)
call('ZADD', K.running, leases)
local more = got < limit and (looks <= 0 or bytes >= LARGE)
if got < limit and not more then mark_asleep() end
if got > 0 and settings[5] then roomy(K, bell, now) end
return answer(more)
