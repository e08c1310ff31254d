-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include graph.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- @include settle.lua
-- @include log.lua
-- complete: claims' jobs are done.
-- Head: fences: a list, or one number for all; logs: of each claim, its new lines with a line feed between them, or false; nil: none.
-- In:  the ids, one after the other; then, unless no job has any, the result of each as an encoded value, or nothing.
-- Out: per claim, 0: ok or 1: stale; none of the last ones if the jobs are large: send those again. If the same call may have taken effect
--      before, a job that is done by this very claim is ok.
-- Invariant: only the claim whose fence is the job's can complete it, and once.

local count = #ARGV[3] / 16
local ids, outcomes = {}, {}
for i = 1, count do ids[i] = string.sub(ARGV[3], i * 16 - 15, i * 16) end
local fences = type(HEAD[5]) == 'table' and HEAD[5]
local logs = HEAD[6]
local found = hmget(K.states, ids)
local keyed = redis.call('EXISTS', K.keys) == 1
know()
local leases = redis.call('ZMSCORE', K.running, unpack(ids))

-- Jobs of one claim have the same state, but for the group behind it, so each is read once.
local befores, afters, size = {}, {}, nil
local function read(packed)
  local own = size and string.sub(packed, 1, size) or packed
  if befores[own] then return own end
  local at, state = cmsgpack.unpack_one(packed)
  if GROUPED then size = at > 0 and at or #packed end
  own = size and string.sub(packed, 1, size) or packed
  befores[own] = state
  afters[own] = cmsgpack.pack({ 'done', state[2], state[3], state[4], state[5], NOW, state[7] })
  return own
end

local finished, states, results, times, ended = {}, {}, {}, {}, {}
local now = text(NOW)
for i = 1, count do
  if read_bytes >= LARGE then break end
  local id, packed, fence = ids[i], found[i], fences and fences[i] or HEAD[5]
  local own = packed and (befores[packed] and packed or read(packed))
  local state = own and befores[own]
  outcomes[i] = 1
  if state and state[2] == fence and state[1] == 'running' and leases[i] and not ended[id] then
    ended[id] = true
    outcomes[i] = 0
    finished[#finished + 1] = id
    times[#times + 1], times[#times + 2] = now, id
    if keyed then unkey(id, facts_of(id), true) end
    states[#states + 1], states[#states + 2] = id, afters[own]
    if GROUPED then
      local _, group = cmsgpack.unpack_one(packed, #own)
      free_slot(group)
    end
    local result = ARGV[i + 3]
    if logs then add_log(id, logs[i]) end
    if result and result ~= '' then results[#results + 1], results[#results + 2] = id, result end
  elseif AGAIN and state and state[2] == fence and state[1] == 'done' then
    outcomes[i] = 0
  end
end

if #finished > 0 then
  call('ZREM', K.running, finished)
  add_total('done', #finished)
  end_parents(finished, DONE)
  if Q.keep_done > 0 then
    call('HSET', K.states, states)
    call('HSET', K.results, results)
    call('ZADD', K.done, times)
    note_end(NOW + Q.keep_done)
  else
    forget(finished)
  end
  Q.ended, Q.stirs = finished, true
  settle()
end
flush()
return outcomes
