-- @include common.lua
-- @include version.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include graph.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- @include settle.lua
-- @include linking.lua
-- @include run.lua
-- @include new-queue.lua
-- @include log.lua
-- @include journals.lua
-- restore: jobs are put back as they were.
-- Head: counts: of each job, how many entries its journal has; nil: none has any.
-- In:  eight items per job: id; MessagePack of [queue, state, fence, attempt, due, started, finished, worker, pushedAt, priority, attempts,
--      group, timeout, key, trace, cost, remember, follows, runs, parked], absent values false, times 0; runs: of a blocked job, whether
--      its onDead is `run`; parked: of a parked job, for what it waits; the encoded data; result, progress, error and log, each
--      nothing where there is none; the ids of its parents, each once, one after the other. Behind those the entries, as of `journal`.
-- Out: [made, outcome…], made as of `push`. outcome: 0: restored, 1: existing.
-- Invariant: places are behind all that were given. A job that finished is kept as long as if it had finished here. A parent that the pond
--      does not know is an open link.

local made, out = 0, { 0 }

local function enter_queue(name)
  at(name)
  know()
  if Q.place then return end
  local settings = redis.call('HMGET', K.queue, 'listed', 'places')
  Q.place, Q.is_new = tonumber(settings[2]) or 0, not settings[1]
end

local function state_of_parent(id) return state_in_pond(id) or 'live' end

-- first, count: where its entries begin, and how many there are
local function restore(id, first, count, list, data, parents, lines, ...)
  if redis.call('HEXISTS', K.jobs, id) == 1 then return AGAIN and 0 or 1 end
  enter_queue(list[1])
  local state, due, finished, key = list[2], list[5], list[7], list[14]
  local kept = (state == 'done' and Q.keep_done) or (state == 'dead' or state == 'cancelled') and Q.keep_dead or nil
  local waits = state == 'blocked' and { parents, list[19], false }
  if waits then judge(waits, state_of_parent) end
  if waits and waits.open == 0 and not waits.doomed then
    state, due = due > NOW and 'scheduled' or 'waiting', math.max(due, NOW)
  end
  local holder = key and redis.call('HGET', K.keys, key)
  local is_held = holder and #holder == 16
  local follows = is_held and state == 'scheduled' and list[18] and redis.call('HEXISTS', K.keys, '\0' .. key) == 0
  if not kept and is_held and not follows then return 1 end
  if Q.is_new then
    make_queue()
    Q.is_new, made = false, 1
  end
  local place = Q.place
  Q.place = place + 1
  -- Behind all values there is when it got its place, since pages are searched by that.
  local record = { place, list[9], list[10], list[11], list[12], list[13], key, list[15], list[16], NOW, list[17] or nil }
  redis.call('HSET', K.jobs, id, string.char(#QUEUE) .. QUEUE .. cmsgpack.pack(record) .. data)
  local kept_state = { state, list[3], list[4], follows and NEVER or due, list[6], finished, list[8], follows and due or nil }
  redis.call('HSET', K.states, id, cmsgpack.pack(kept_state))
  for i, name in ipairs({ 'results', 'progress', 'errors' }) do
    local value = select(i, ...)
    if value ~= '' then redis.call('HSET', K[name], id, value) end
  end
  add_log(id, lines ~= '' and lines)
  local plan = (count > 0 or list[20]) and plan_entries(id, first, count)
  if plan then
    add_entries(plan)
    if list[20] and not kept then note_parked(plan, list[20]) end
  end
  if kept then
    redis.call('ZADD', K[state], text(finished), id)
    note_end(finished + kept)
    local till = key and not is_held and state ~= 'cancelled' and till_of(record, finished)
    if till and (not holder or till > tonumber(string.sub(holder, 17))) then remember(key, id, till) end
    -- Jobs that were restored before it may wait for it.
    end_parent(id, state == 'done' and DONE or state == 'dead' and DEAD or CANCELLED)
    return 0
  end
  if key then redis.call('HSET', K.keys, follows and '\0' .. key or key, id) end
  if follows then redis.call('ZADD', K.scheduled, text(NEVER), id)
  elseif state == 'blocked' then
    redis.call('ZADD', K.awaiting, text(place), id)
    link_job(id, waits, {})
    flush_links()
  elseif state == 'scheduled' then
    redis.call('ZADD', K.scheduled, text(due), id)
    Q.soon = Q.soon or due < NOW + SOON
  else enter(list[10], place, id, list[12] or nil, list[16]) end
  return 0
end

local counts = HEAD[5]
local jobs = counts and #counts or (#ARGV - 2) / 8
local first = 3 + 8 * jobs
for job = 1, jobs do
  local i, count = job * 8 - 5, counts and counts[job] or 0
  local list, result, progress, failure, lines, parents = cmsgpack.unpack(ARGV[i + 1]), unpack(ARGV, i + 3, i + 7)
  out[#out + 1] = restore(ARGV[i], first, count, list, ARGV[i + 2], parents, lines, result, progress, failure)
  first = first + 2 * count
end
out[1] = made
for _, q in ipairs(order) do
  redis.call('HSET', q.keys.queue, 'places', text(q.place))
  q.moves = true
end
cancel_doomed()
settle()
flush()
return out
