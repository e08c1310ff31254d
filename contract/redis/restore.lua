-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include run.lua
-- @include once.lua
-- @include log.lua
-- restore: jobs are put back as they were.
-- KEYS: queue jobs states keys scheduled pages waiting done dead cancelled results progress errors lines touched remembered awaiting
--      parents @due @ends
-- Head: floor, partitions: as of `push`.
-- In:  eight items per job: id; MessagePack of [state, fence, attempt, due, started, finished, worker, pushedAt, priority, attempts, group,
--      timeout, key, trace, cost, remember, follows, runs], absent values false, times 0; runs: of a blocked job, whether its onDead is
--      `run`; the
--      encoded data; result, progress, error and log, each nothing where there is none; the ids of its parents, one after the other.
-- Out: [listed, outcome…], as `push`. outcome: 0: restored, 1: existing.
--      The parents of a blocked job are all awaited; the client links it to those that are there.
-- Invariant: places are behind all that were given. A job that finished is kept as long as if it had finished here.

local K = keys_of(
  'queue jobs states keys scheduled pages waiting done dead cancelled results progress errors lines touched remembered '
    .. 'awaiting parents @due @ends')
local floor, partitions = HEAD[6], HEAD[7]
local settings = redis.call('HMGET', K.queue, 'listed', 'run', 'limits', 'keepDone', 'keepDead', 'places')
GROUPED = settings[3] == 'groups'
local listed = tonumber(settings[1]) == partitions
if not listed and not floor then return {} end
if not settings[2] then new_run(K, floor) end
local keep = { done = tonumber(settings[4]) or DEFAULT.keepDone, dead = tonumber(settings[5]) or DEFAULT.keepDead }
keep.cancelled = keep.dead
local place, soon, outcomes = tonumber(settings[6]) or 0, false, { listed and 1 or 0 }

local function restore(id, list, data, parents, lines, ...)
  if redis.call('HEXISTS', K.jobs, id) == 1 then return AGAIN and 0 or 1 end
  local state, due, finished, key, kept = list[1], list[4], list[6], list[13], keep[list[1]]
  if state == 'blocked' and parents == '' then
    state, due = due > NOW and 'scheduled' or 'waiting', math.max(due, NOW)
  end
  local holder = key and redis.call('HGET', K.keys, key)
  local is_held = holder and #holder == 16
  local follows = is_held and state == 'scheduled' and list[17] and redis.call('HEXISTS', K.keys, '\0' .. key) == 0
  if not kept and is_held and not follows then return 1 end
  -- Behind all values there is when it got its place, since pages are searched by that.
  local record = { place, list[8], list[9], list[10], list[11], list[12], key, list[14], list[15], NOW, list[16] or nil }
  redis.call('HSET', K.jobs, id, cmsgpack.pack(record) .. data)
  local kept_state = { state, list[2], list[3], follows and NEVER or due, list[5], finished, list[7], follows and due or nil }
  redis.call('HSET', K.states, id, cmsgpack.pack(kept_state))
  for i, name in ipairs({ 'results', 'progress', 'errors' }) do
    local value = select(i, ...)
    if value ~= '' then redis.call('HSET', K[name], id, value) end
  end
  add_log(K, id, lines ~= '' and lines)
  if kept then
    redis.call('ZADD', K[state], text(finished), id)
    note_end(K, finished + kept)
    local till = key and not is_held and state ~= 'cancelled' and till_of(record, finished)
    if till and (not holder or till > tonumber(string.sub(holder, 17))) then remember(K, key, id, till) end
  else
    if key then redis.call('HSET', K.keys, follows and '\0' .. key or key, id) end
    if follows then
      redis.call('ZADD', K.scheduled, text(NEVER), id)
    elseif state == 'blocked' then
      redis.call('ZADD', K.awaiting, text(place), id)
      redis.call('HSET', K.parents, id, struct.pack('>c1c16I3', list[18] and 'r' or 'c', string.rep('\0', 16), #parents / 16) .. parents)
    elseif state == 'scheduled' then
      redis.call('ZADD', K.scheduled, text(due), id)
      soon = soon or due < NOW + SOON
    else enter(list[9], place, id, list[11] or nil, list[15]) end
  end
  place = place + 1
  return 0
end

for i = 3, #ARGV, 8 do
  local at = #outcomes + 1
  local list, result, progress, failure, lines, parents = cmsgpack.unpack(ARGV[i + 1]), unpack(ARGV, i + 3, i + 7)
  outcomes[at] = restore(ARGV[i], list, ARGV[i + 2], parents, lines, result, progress, failure)
end
redis.call('HSET', K.queue, 'places', text(place))
local came = entered(K)
note_due(K)
if came or soon then wake(K) end
return outcomes
