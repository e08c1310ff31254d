-- @include common.lua
-- @include jobs.lua
-- @include endings.lua
-- complete: claims' jobs are done.
-- KEYS: queue jobs states keys running done results progress errors slots touched @ends
-- Head: fences: a list, or one number for all.
-- In:  the ids, one after the other; then, unless no job has any, the result of each as an encoded value, or nothing.
-- Out: per claim, 0: ok or 1: stale. If the same call may have taken effect before, a job that is done by this very claim is ok.
-- Invariant: only the claim whose fence is the job's can complete it, and once.

local K = keys_of('queue jobs states keys running done results progress errors slots touched @ends')
local count = #ARGV[3] / 16
local ids, outcomes = {}, {}
for i = 1, count do ids[i] = string.sub(ARGV[3], i * 16 - 15, i * 16) end
local fences = type(HEAD[6]) == 'table' and HEAD[6]
local found = hmget(K.states, ids)
local keyed = redis.call('EXISTS', K.keys) == 1

-- Jobs of one claim have the same state, so each is read once.
local befores, afters = {}, {}
local function read(packed)
  local state = cmsgpack.unpack(packed)
  befores[packed] = state
  afters[packed] = cmsgpack.pack({ 'done', state[2], state[3], state[4], state[5], NOW, state[7] })
end

local finished, states, results, ended = {}, {}, {}, {}
for i = 1, count do
  local id, packed, fence = ids[i], found[i], fences and fences[i] or HEAD[6]
  if packed and not befores[packed] then read(packed) end
  local state = packed and befores[packed]
  outcomes[i] = 1
  if state and state[2] == fence and state[1] == 'running' and not ended[id] then
    ended[id] = true
    outcomes[i] = 0
    finished[#finished + 1] = id
    states[#states + 1], states[#states + 2] = id, afters[packed]
    local result = ARGV[i + 3]
    if result and result ~= '' then results[#results + 1], results[#results + 2] = id, result end
  elseif AGAIN and state and state[2] == fence and state[1] == 'done' then
    outcomes[i] = 0
  end
end

if #finished > 0 then
  call('ZREM', K.running, finished)
  local kept, limits = keep(K, true)
  if keyed or GROUPED then
    for i = 1, #finished do
      local list = facts(redis.call('HGET', K.jobs, finished[i]))
      unkey(K, finished[i], list)
      if GROUPED then free_slot(K, list[5]) end
    end
  end
  if kept > 0 then
    call('HSET', K.states, states)
    call('HSET', K.results, results)
    call('RPUSH', K.done, finished)
    note_end(K, NOW + kept)
  else
    forget(K, finished)
  end
  finished_bell(K, finished)
  if limits then freed_bell(K) end
end
return outcomes
