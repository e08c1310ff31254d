-- What `push`, `push-full` and `fire` share: jobs that are stored, of any number of queues. Their heads and items are those of `push`.
-- Needs run.lua, waiting.lua, endings.lua.

local MEET = false -- meet.lua: a live job has the key
local GRAPH = false -- push-full.lua: what it does with jobs that wait for others

local function ids_in(bytes)
  local ids = {}
  for at = 1, #bytes, 16 do ids[#ids + 1] = string.sub(bytes, at, at + 15) end
  return ids
end

-- Goes to a queue that gets jobs.
local function enter_queue(name)
  at(name)
  if Q.keys_given then return end
  local settings = redis.call('HMGET', K.queue, 'listed', 'capacity', 'attempts', 'timeout', 'waiting', 'places', 'limits')
  set_grouped(settings[7])
  Q.is_new = not settings[1]
  Q.attempts, Q.timeout = tonumber(settings[3]) or DEFAULT.attempts, tonumber(settings[4]) or false
  Q.room = math.huge
  if settings[2] then
    Q.room = settings[2] - (settings[5] or 0) - redis.call('ZCARD', K.scheduled) - redis.call('ZCARD', K.awaiting)
  end
  Q.place, Q.stored, Q.shared = tonumber(settings[6]) or 0, 0, {}
  Q.due_times, Q.blocked, Q.keys_given, Q.by_key = {}, {}, {}, {}
  Q.start = string.char(#name) .. name
end

-- What stands before and behind the place in the records of all jobs of the queue with these values: MessagePack of a list.
local function shared_of(value)
  local list = { NOW, value[1], value[4] or Q.attempts }
  local timeout = value[5] or Q.timeout
  local remember = value[10] and value[10][1]
  if remember then list[9], list[10] = NOW, remember end
  if remember then list[8] = value[9] or false end
  if value[9] then list[8] = value[9] end
  if value[8] or list[8] ~= nil then list[7] = value[8] or false end
  if value[7] or list[7] ~= nil then list[6] = value[7] or false end
  if timeout or list[6] ~= nil then list[5] = timeout or false end
  if value[6] or list[5] ~= nil then list[4] = value[6] or false end
  return { Q.start .. string.char(0x90 + #list + 1), cmsgpack.pack(unpack(list)) }
end

-- @return the id of the job that has the key, and whether it is a live one; nil: none
local function holder_of(key)
  local holder = Q.by_key[key] or redis.call('HGET', K.keys, key)
  if not holder or #holder == 16 then return holder or nil, true end
  -- Remembered, until then.
  if tonumber(string.sub(holder, 17)) > NOW then return string.sub(holder, 1, 16), false end
  return nil
end

-- A queue is there from its first push on, even if that stores nothing.
local made = 0
local function make_if_new()
  if not Q.is_new then return end
  make_queue()
  Q.is_new, made = false, 1
end

local records, states = {}, {}

-- Writes what has come so far.
local function store()
  local name = QUEUE
  for _, q in ipairs(order) do
    if q.stored and q.stored > 0 then
      at(q.name)
      make_if_new()
      redis.call('HSET', K.queue, 'places', text(q.place))
      call('HSET', K.keys, q.keys_given)
      call('ZADD', K.awaiting, q.blocked)
      if #q.due_times > 0 then
        call('ZADD', K.scheduled, q.due_times)
        q.moves = true
      end
      add_total('pushed', q.stored)
      q.stored, q.due_times, q.blocked, q.keys_given, q.by_key = 0, {}, {}, {}, {}
      q.soon = entered() or q.soon
    end
  end
  call('HSET', K.jobs, records)
  call('HSET', K.states, states)
  records, states = {}, {}
  if GRAPH then GRAPH.flush() end
  if name then at(name) end
end

-- Jobs of the call, from the place `first` to `last`. out: gets their outcomes, from its second place on. taken: gets the ids that are
-- stored. data_at: where their data begin. @return whether all were pushed, and where the data of the next one begin
local function push_jobs(ids, first, last, out, taken, data_at)
  local all_values, which, sizes, queues, of = HEAD[5], HEAD[6], HEAD[7], HEAD[8], HEAD[9]
  local found, all_pushed = hmget(K.jobs, ids), true
  for i = first, last do
    enter_queue(queues[of and of[i] or 1])
    local at_values = which and which[i] or 1
    local id, value, data_from = ids[i], all_values[at_values], data_at
    data_at = data_at + sizes[i]
    local key, is_waiting = value[7], GRAPH and GRAPH.has_parents(i)
    local once = MEET and key and not is_waiting and value[10]
    local outcome, follows = nil, false
    if taken[id] or found[i] then
      outcome = found[i] and AGAIN and not taken[id] and 0 or id
    elseif key then
      if once then store() end
      local holder, is_live = holder_of(key)
      if holder and is_live and once then
        local how, met = MEET(key, holder, value, string.sub(ARGV[4], data_from, data_at - 1))
        follows = how == 'follows'
        outcome = how == 'replaced' and met .. 'r' or met
      else outcome = holder end
      -- That job does not wait for the parents of this one.
      if is_waiting and outcome then outcome = { 'held', outcome } end
    end
    if not outcome and Q.room <= 0 then
      outcome = 1
      Q.is_full = true
    end
    local waits, orphan
    if GRAPH and not outcome then waits, orphan = GRAPH.waits(i) end
    if orphan then outcome = { 'orphan', orphan } end
    if outcome then
      out[i + 1] = outcome
      all_pushed = all_pushed and outcome == 0
      if GRAPH and type(outcome) == 'string' then GRAPH.stands_for(id, string.sub(outcome, 1, 16)) end
    else
      out[i + 1], taken[id] = 0, true
      local doomed = waits and waits.doomed
      if not doomed then Q.room = Q.room - 1 end
      local shared, place = Q.shared[at_values], Q.place
      if not shared then
        shared = shared_of(value)
        Q.shared[at_values] = shared
      end
      Q.stored, Q.place = Q.stored + 1, place + 1
      local n = #records
      records[n + 1] = id
      records[n + 2] = shared[1] .. cmsgpack.pack(place) .. shared[2] .. string.sub(ARGV[4], data_from, data_at - 1)
      if key and not doomed then
        if not follows then Q.by_key[key] = id end
        Q.keys_given[#Q.keys_given + 1] = follows and '\0' .. key or key
        Q.keys_given[#Q.keys_given + 1] = id
      end
      local due = value[3] and math.max(NOW, value[3]) or NOW + (value[2] or 0)
      local max_wait = key and value[10] and value[10][3]
      if max_wait then due = math.min(due, NOW + max_wait) end
      local m = #states
      if follows then
        states[m + 1], states[m + 2] = id, cmsgpack.pack({ 'scheduled', 0, 0, NEVER, 0, 0, false, due })
        Q.due_times[#Q.due_times + 1], Q.due_times[#Q.due_times + 2] = text(NEVER), id
      elseif waits and (waits.open > 0 or doomed) then
        due = math.min(due, NEVER - 1)
        if due ~= Q.blocked_due then Q.blocked_due, Q.blocked_state = due, cmsgpack.pack({ 'blocked', 0, 0, due, 0, 0, false }) end
        states[m + 1], states[m + 2] = id, Q.blocked_state
        Q.blocked[#Q.blocked + 1], Q.blocked[#Q.blocked + 2] = text(place), id
      elseif due > NOW then
        due = math.min(due, NEVER - 1)
        Q.soon = Q.soon or due < NOW + SOON
        states[m + 1], states[m + 2] = id, cmsgpack.pack({ 'scheduled', 0, 0, due, 0, 0, false })
        Q.due_times[#Q.due_times + 1], Q.due_times[#Q.due_times + 2] = text(due), id
      else
        enter(value[1], place, id, value[6], value[9])
      end
      if waits then GRAPH.link(id, waits) end
    end
  end
  return all_pushed, data_at
end

-- The end of a push. @return 1 if a queue came into being
local function pushed()
  store()
  for _, q in ipairs(order) do
    at(q.name)
    make_if_new()
    if q.is_full then redis.call('HSET', K.queue, 'room', NOW) end
  end
  return made
end
