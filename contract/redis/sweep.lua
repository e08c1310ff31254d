-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include graph.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- @include settle.lua
-- @include grouped.lua
-- @include limits.lua
-- @include backlog.lua
-- @include scheduled.lua
-- sweep: what time alone brings about, in the whole pond.
-- Head: limit: at most so many jobs of each kind of work; schedules: most schedules that are told.
-- In:  nothing.
-- Out: [now, promoted, expired, more, next, queues, lost, schedules, changed]. more: 1 if it left something to another call at once. next:
--      ms
--      until the next scheduled job is due or schedule fires, or -1. queues: how many there are. lost: a list, four items per lost claim:
--      id, queue, attempt, 1 if the job is dead. schedules: a list, two items for each that is due, longest due first, then by name: its
--      name and its value. changed: a list, two items per queue: its name, 1 if jobs began to wait.
-- Invariant: costs what is due, not how many queues, groups or jobs there are. Any number of processes may sweep at once. Afterwards `due`
-- and
--      `ends` tell when there is more to do.

local limit, most_schedules = math.min(HEAD[5], 250), HEAD[6]
local MOST_QUEUES = 50 -- in one call
local KEEP_CLAIMS = 600000 -- ms
local promoted, expired, lost, forgotten, settled, more = 0, 0, {}, 0, 0, 0
may_write()

-- Ids up to a time, soonest first.
local function until_time(key, time, count)
  if count <= 0 then return {} end
  return redis.call('ZRANGEBYSCORE', key, '-inf', text(time), 'LIMIT', 0, count)
end

local function promote()
  for _, id in ipairs(until_time(K.scheduled, NOW, limit - promoted)) do
    if read_bytes >= LARGE then break end
    redis.call('ZREM', K.scheduled, id)
    local state, list = state_of(id), facts_of(id)
    put_state(id, 'waiting', state[2], state[3], state[4], state[5], 0, state[7])
    enter(list[3], list[1], id, list[5], list[9])
    promoted, Q.came = promoted + 1, true
  end
  Q.moves = true
end

local function end_leases()
  for _, id in ipairs(until_time(K.running, NOW, limit - #lost / 4)) do
    if read_bytes >= LARGE then break end
    redis.call('ZREM', K.running, id)
    local state, list = state_of(id), facts_of(id)
    local is_dead, n = state[3] >= list[4], #lost
    if GROUPED then free_slot(list[5]) end
    lost[n + 1], lost[n + 2], lost[n + 3], lost[n + 4] = id, QUEUE, state[3], is_dead and 1 or 0
    add_total('lost')
    Q.stirs = true
    if not is_dead then
      put_state(id, 'waiting', state[2], state[3], NOW, state[5], 0, state[7])
      enter(list[3], list[1], id, list[5], list[9])
      Q.came = true
    else
      unkey(id, list, true)
      note_ended(id)
      add_total('dead')
      end_parent(id, DEAD)
      if Q.keep_dead == 0 then
        forget({ id })
      else
        local failure = { 'LeaseLost', 'MillpondError', 'Worker ' .. state[7] .. ' fell silent.' }
        redis.call('HSET', K.errors, id, cmsgpack.pack(failure))
        put_state(id, 'dead', state[2], state[3], state[4], state[5], NOW, state[7])
        redis.call('ZADD', K.dead, NOW, id)
      end
    end
  end
end

local LOOK, MOST_KEPT, CHILDREN = 60000, 100, 500

-- @return the first live child of a job, from that child on; or the last of many that are not live, and true: look on from there
local function live_child(id, from)
  local open = linked('o', id, 1)[1]
  if open then return open, false end
  local start = 'c' .. id
  local ids = redis.call('ZRANGEBYLEX', K.links, '[' .. start .. from, '[' .. start .. AFTER_ID, 'LIMIT', 0, CHILDREN)
  for i = 1, #ids do ids[i] = string.sub(ids[i], 18) end
  for i, is_live in ipairs(are_live(ids)) do
    if is_live then return ids[i], false end
  end
  if #ids == CHILDREN then return ids[CHILDREN], true end
end

local function keep(id, child, look)
  redis.call('ZADD', K.kept, text(look), id)
  redis.call('HSET', K.keptFrom, id, child)
end

-- Done jobs with a live child stay: it may ask for their results. @return the others
local function without_parents(ids)
  local others = {}
  for i, value in ipairs(hmget(K.waits, ids)) do
    local child, more
    if value then child, more = live_child(ids[i], '') end
    if child then keep(ids[i], child, more and NOW + 1 or NOW + LOOK) else others[#others + 1] = ids[i] end
  end
  return others
end

local function expire()
  for state, kept in pairs({ done = Q.keep_done, dead = Q.keep_dead, cancelled = Q.keep_dead }) do
    local ids = until_time(K[state], NOW - kept, limit - expired)
    if #ids > 0 then
      call('ZREM', K[state], ids)
      expired = expired + #ids
      if state == 'done' and has_waits() then ids = without_parents(ids) end
      forget(ids)
    end
  end
end

-- Removes jobs that were kept for children of which none is live any more.
local function look_at_kept()
  local free = {}
  for _, id in ipairs(until_time(K.kept, NOW, MOST_KEPT)) do
    local child, more = live_child(id, redis.call('HGET', K.keptFrom, id) or '')
    if child then keep(id, child, more and NOW + 1 or NOW + LOOK) else free[#free + 1] = id end
  end
  forget(free)
end

-- What workers last got is asked for within seconds, if ever. Those that ended without a word left theirs behind. @return when to look
-- again
local function forget_claims()
  local next_look = KEEP_CLAIMS + 1
  for _, worker in ipairs(redis.call('HRANDFIELD', K.claims, 8)) do
    local _, list = cmsgpack.unpack_one(redis.call('HGET', K.claims, worker))
    if math.abs(NOW - list[2]) > KEEP_CLAIMS then
      redis.call('HDEL', K.claims, worker)
      next_look = SOON
    end
  end
  return redis.call('EXISTS', K.claims) == 1 and NOW + next_look or math.huge
end

-- When there is more to do in the queue: then, or sooner.
local function note_next(soonest)
  local function sooner(key, kept)
    local time = tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
    if time then soonest = math.min(soonest, time + kept) end
  end
  sooner(K.running, 0)
  if GROUPED then sooner(K.unused, 0) end
  sooner(K.remembered, 0)
  sooner(K.kept, 0)
  sooner(K.done, Q.keep_done)
  sooner(K.dead, Q.keep_dead)
  sooner(K.cancelled, Q.keep_dead)
  if soonest < math.huge then redis.call('ZADD', K.ends, text(soonest), QUEUE) else redis.call('ZREM', K.ends, QUEUE) end
end

local function sweep_queue()
  know()
  promote()
  end_leases()
  expire()
  look_at_kept()
  local again = forget_claims()
  flush_queue()
  if GROUPED then
    local limits = limits_of(true)
    if move_backlog(limits) then again = NOW end
    forgotten = forgotten + limits.forget_groups(limit - forgotten)
  end
  forgotten = forgotten + forget_keys(limit - forgotten)
  note_next(again)
end

local count = 0
for _, key in ipairs({ K.due, K.ends }) do
  for _, name in ipairs(until_time(key, NOW, MOST_QUEUES)) do
    if not visited[name] and read_bytes < LARGE then
      at(name)
      sweep_queue()
    end
    count = count + 1
  end
  if count >= MOST_QUEUES then more = 1 end
end
settle()
if settle_line() then more = 1 end
flush()
if read_bytes >= LARGE or math.max(promoted, #lost / 4, expired, forgotten) >= limit then more = 1 end

-- Workers that were not heard of for a minute: a few at a time, so that it costs the same with many.
local workers = redis.call('HRANDFIELD', K.workers, 8, 'WITHVALUES')
for i = 1, #workers, 2 do
  local is_heard = false
  for _, entry in ipairs(cmsgpack.unpack(workers[i + 1])) do is_heard = is_heard or NOW - entry[7] <= 60000 end
  if not is_heard then redis.call('HDEL', K.workers, workers[i]) end
end

local schedules, bytes = {}, 0
for _, name in ipairs(until_time(K.nextFirings, NOW, most_schedules)) do
  local value = redis.call('HGET', K.schedules, name) or ''
  schedules[#schedules + 1], schedules[#schedules + 2] = name, value
  bytes = bytes + #value
  if bytes >= LARGE then break end
end

local next_time = math.huge
local due = redis.call('ZRANGE', K.due, 0, 0, 'WITHSCORES')[2]
if due then next_time = math.max(0, due - NOW) end
local firing = redis.call('ZRANGEBYSCORE', K.nextFirings, '(' .. text(NOW), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
if firing then next_time = math.min(next_time, firing - NOW) end

local changed = {}
for _, q in ipairs(order) do changed[#changed + 1], changed[#changed + 2] = q.name, (q.came or q.unasked) and 1 or 0 end
return {
  NOW, promoted, expired, more, next_time < math.huge and next_time or -1, redis.call('SCARD', K.queues), lost, schedules, changed,
}
