-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include graph.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- @include settle.lua
-- @include log.lua
-- fail: claims' attempts failed.
-- Head: logs: as of `complete`.
-- In:  four items per claim: id, fence, error as MessagePack, delay: ms until the next attempt, nothing: no further attempt, or `r` and a
--      random number from 0 to below 1: by the queue's policy.
-- Out: per claim, 0: retry, 1: stale or 2: dead; none of the last ones if the jobs are large: send those again. If the same call may have
--      taken effect before, what the job's state says of this very claim.
-- Invariant: dead when there is no delay or no attempt left.

local count = (#ARGV - 2) / 4
local outcomes = {}
know()

local policy
local function backoff(attempt, random)
  if not policy then
    local set = redis.call('HGET', K.queue, 'backoff')
    policy = set and cmsgpack.unpack(set) or DEFAULT.backoff
  end
  local base, factor, max, jitter = policy[1], policy[2], policy[3], policy[4]
  -- Zero times a power past all bounds would be no number.
  local delay = base == 0 and 0 or math.min(max, base * factor ^ (attempt - 1))
  return math.floor(delay * (1 - jitter * random))
end

local function fail(id, fence, failure, delay, lines)
  local state = state_of(id)
  if not state or state[2] ~= fence then return 1 end
  if state[1] ~= 'running' then
    if not AGAIN then return 1 end
    return state[1] == 'dead' and 2 or (state[1] == 'waiting' or state[1] == 'scheduled') and 0 or 1
  end
  if redis.call('ZREM', K.running, id) == 0 then return 1 end
  local list = facts_of(id)
  add_total('failed')
  Q.stirs = true
  if GROUPED then free_slot(list[5]) end
  local attempt = state[3]
  if delay == '' or attempt >= list[4] then
    if Q.keep_dead > 0 then add_log(id, lines) end
    unkey(id, list, true)
    note_ended(id)
    add_total('dead')
    end_parent(id, DEAD)
    if Q.keep_dead == 0 then
      forget({ id })
    else
      redis.call('HSET', K.errors, id, failure)
      put_state(id, 'dead', fence, attempt, state[4], state[5], NOW, state[7])
      redis.call('ZADD', K.dead, NOW, id)
      note_end(NOW + Q.keep_dead)
    end
    return 2
  end
  add_log(id, lines)
  local ms = string.sub(delay, 1, 1) == 'r' and backoff(attempt, tonumber(string.sub(delay, 2))) or tonumber(delay)
  local due = math.min(NOW + ms, NEVER - 1)
  redis.call('HSET', K.errors, id, failure)
  put_state(id, ms > 0 and 'scheduled' or 'waiting', fence, attempt, due, state[5], 0, state[7])
  if ms > 0 then
    redis.call('ZADD', K.scheduled, text(due), id)
    Q.moves, Q.soon = true, Q.soon or ms < SOON
  else
    enter(list[3], list[1], id, list[5], list[9])
  end
  return 0
end

for i = 1, count do
  if read_bytes >= LARGE then break end
  outcomes[i] = fail(ARGV[i * 4 - 1], tonumber(ARGV[i * 4]), ARGV[i * 4 + 1], ARGV[i * 4 + 2], HEAD[5] and HEAD[5][i])
end
settle()
flush()
return outcomes
