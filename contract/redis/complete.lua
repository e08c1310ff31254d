-- @include common.lua
-- @include jobs.lua
-- @include endings.lua
-- complete: claims' jobs are done.
-- KEYS: queue jobs states keys running done results progress errors
-- In:  [now, bell, again, ids, fences, results]. fences: a list, or one number for all; results: a list of MessagePack (or false), or false
--      for none. `again`: the same call may have taken effect before; a job that is done by this very claim is then `ok`.
-- Out: nothing if all were ok; else a list with, per claim, 0: ok or 1: stale.
-- Invariant: only the claim whose fence is the job's can complete it, and once.

local K = {
  queue = KEYS[1], jobs = KEYS[2], states = KEYS[3], keys = KEYS[4], running = KEYS[5], done = KEYS[6],
  results = KEYS[7], progress = KEYS[8], errors = KEYS[9],
}
local input = cmsgpack.unpack(ARGV[1])
local now, bell, again, ids, results_in = clock(input[1]), input[2], input[3], input[4], input[6]
local count = #ids
local fences_in = type(input[5]) == 'table' and input[5]
local fence = input[5]
local found = hmget(K.states, ids)

-- Jobs of one claim have the same state, so each is read once.
local fences, letters, keyed, afters = {}, {}, {}, {}
local function read(state)
  local letter, flags, fence, attempt, due, started, _, worker = decode(state)
  fences[state], letters[state], keyed[state] = fence, letter, flags % 2 == 1
  afters[state] = encode('d', flags, fence, attempt, due, started, now, worker)
end

local finished, before, states, results, stale, ended = {}, {}, {}, {}, {}, {}
local plain, ok = true, 0
for i = 1, count do
  local id, state = ids[i], found[i]
  if fences_in then fence = fences_in[i] end
  if state and not fences[state] then read(state) end
  if state and fences[state] == fence and letters[state] == 'r' and not ended[id] then
    ended[id] = true
    ok = ok + 1
    finished[ok], before[ok] = id, state
    states[ok * 2 - 1], states[ok * 2] = id, afters[state]
    if keyed[state] then unkey(K, id, KEYED) end
    if results_in and results_in[i] then
      results[#results + 1] = id
      results[#results + 1] = results_in[i]
    end
  elseif not (again and state and fences[state] == fence and letters[state] == 'd') then
    stale[i] = '\1'
    plain = false
  end
end

if ok > 0 then
  call('ZREM', K.running, finished)
  if keep(K, 'd') > 0 then
    call('HSET', K.states, states)
    call('HSET', K.results, results)
    call('RPUSH', K.done, finished)
  else
    forget(K, finished, before)
  end
  finished_bell(K, bell, now, finished)
end
if plain then return '' end
for i = 1, count do stale[i] = stale[i] or '\0' end
return list_of(count) .. table.concat(stale)
