-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include links.lua
-- @include endings.lua
-- @include once.lua
-- @include grouped.lua
-- @include limits.lua
-- @include backlog.lua
-- sweep: what time alone brings about, in one partition.
-- KEYS: queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors claims limits lines slots groups
--      names blocked touched unused remembered parents children ended graphs staged @due @ends
-- Head: promote, lose, expire: at most so many of each. forget: at most so many groups to look at.
-- In:  nothing.
-- Out: [promoted, expired, groups, more, lost…]. groups: how many it has looked at, and remembered keys, whether to forget them.
--      more: 1 if it left something to another call at once, since jobs are large. Three items per lost claim: id, attempt, 1 if it is
--      dead. Then links, among them graphs that are to be decided: `graph`, its id, the part that decides, or, where its jobs are to be
--      started, nothing.
-- Invariant: touches at most that many jobs. Any number of processes may sweep at once. Afterwards `@due` and `@ends` tell when there is
--      more to do.

local K = keys_of(
  'queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors claims '
    .. 'limits lines slots groups names blocked touched unused remembered parents children ended graphs staged @due @ends')
local promote, lose, expire, forget_most = HEAD[6], HEAD[7], HEAD[8], HEAD[9]
local promoted, expired, out, finished = 0, 0, { 0, 0, 0, 0 }, {}
local keep_done, limited = keep(K, true)
local keep_dead = keep(K, false)
may_write(K)

-- Ids up to a time, soonest first.
local function until_time(key, time, limit)
  if limit <= 0 then return {} end
  return redis.call('ZRANGEBYSCORE', key, '-inf', text(time), 'LIMIT', 0, limit)
end

for _, id in ipairs(until_time(K.scheduled, NOW, promote)) do
  if read_bytes >= LARGE then break end
  redis.call('ZREM', K.scheduled, id)
  local state, list = state_of(K, id), facts_of(K, id)
  put_state(K, id, 'waiting', state[2], state[3], state[4], state[5], 0, state[7])
  enter(list[3], list[1], id, list[5], list[9])
  promoted = promoted + 1
end

for _, id in ipairs(until_time(K.running, NOW, lose)) do
  if read_bytes >= LARGE then break end
  redis.call('ZREM', K.running, id)
  local state, list = state_of(K, id), facts_of(K, id)
  local dead = state[3] >= list[4]
  if GROUPED then free_slot(list[5]) end
  out[#out + 1], out[#out + 2], out[#out + 3] = id, state[3], dead and 1 or 0
  if not dead then
    put_state(K, id, 'waiting', state[2], state[3], NOW, state[5], 0, state[7])
    enter(list[3], list[1], id, list[5], list[9])
  else
    unkey(K, id, list, true)
    finished[#finished + 1] = id
    end_parent(K, id, DEAD)
    if keep_dead == 0 then
      forget(K, { id })
    else
      redis.call('HSET', K.errors, id,
        cmsgpack.pack({ 'LeaseLost', 'MillpondError', 'Worker ' .. state[7] .. ' fell silent.' }))
      put_state(K, id, 'dead', state[2], state[3], state[4], state[5], NOW, state[7])
      redis.call('ZADD', K.dead, NOW, id)
    end
  end
end

if GROUPED then freed_slots(K) end

local kept = { [K.done] = keep_done, [K.dead] = keep_dead, [K.cancelled] = keep_dead }
for _, key in ipairs({ K.done, K.dead, K.cancelled }) do
  local ids = until_time(key, NOW - kept[key], expire - expired)
  if #ids > 0 then
    call('ZREM', key, ids)
    forget(K, ids)
    expired = expired + #ids
  end
end

-- What workers last got is asked for within seconds, if ever. Those that ended without a word left theirs behind.
for _, worker in ipairs(redis.call('HRANDFIELD', K.claims, 8)) do
  local _, list = cmsgpack.unpack_one(redis.call('HGET', K.claims, worker))
  if math.abs(NOW - list[2]) > 600000 then redis.call('HDEL', K.claims, worker) end
end

count_total(K, 'lost', (#out - 4) / 3)
count_total(K, 'dead', #finished)
if entered(K) then wake(K)
elseif limited and #finished > 0 then freed_bell(K) end
finished_bell(K, finished)

local backlog = false
if GROUPED then
  local limits = limits_of(K, true)
  backlog = move_backlog(K, limits)
  out[3] = limits.forget_groups(forget_most)
end
out[3] = out[3] + forget_keys(K, forget_most - out[3])

note_due(K)
local soonest = math.huge
local function sooner(time, kept)
  if time then soonest = math.min(soonest, time + kept) end
end
local function head_score(key) return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]) end
if backlog then sooner(NOW, 0) end
sooner(head_score(K.running), 0)
if GROUPED then sooner(head_score(K.unused), 0) end
sooner(head_score(K.remembered), 0)
for key, kept_for in pairs(kept) do sooner(head_score(key), kept_for) end
if read_bytes >= LARGE then out[4] = 1 end

-- What is to be done elsewhere: parents that have ended, and graphs whose client fell silent.
local UNDECIDED = 60000
local told = { 'links' }
local function tell_graphs()
  for _, graph in ipairs(redis.call('HRANDFIELD', K.staged, 100)) do
    local time = tonumber(redis.call('ZSCORE', K.graphs, graph) or nil)
    if not time then
      told[#told + 1] = { 'graph', graph, '' }
    elseif time <= NOW - UNDECIDED then
      local staged = redis.call('HGET', K.staged, graph)
      told[#told + 1] = { 'graph', graph, string.sub(staged, 3, 2 + string.byte(staged, 2)) }
    end
    sooner(time and math.max(time + UNDECIDED, NOW) or NOW, 0)
  end
end
tell_ended(K, told)
tell_graphs()
if redis.call('EXISTS', K.ended) == 1 then sooner(NOW, 0) end
if soonest < math.huge then redis.call('ZADD', K['@ends'], text(soonest), PART) else redis.call('ZREM', K['@ends'], PART) end
out[1], out[2] = promoted, expired
if #told > 1 then out[#out + 1] = told end
return out
