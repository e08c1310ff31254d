-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include endings.lua
-- @include journals.lua
-- signal: live jobs get entries from outside.
-- Head: nothing further.
-- In:  five items per signal: the id of the job, or nothing; a queue and a key, or nothing twice; the entry, as of `journal`.
-- Out: per signal a list [status, id, queue]: 0: ok, 1: ended, 2: full, 3: none; the id of the job, nil where there is none; its queue, if
--      the job was parked and waits now. None of the last ones if the jobs or the signals are large: send those again.
-- Invariant: an entry with a name that the journal has is left out. If the same call may have taken effect before, a job that has ended and
--      has the entry is ok.

local FINAL = { done = true, dead = true, cancelled = true }

-- Goes to the queue of the job. @return its id and its record; nil: there is no such job
local function job_of(id, queue, key)
  if id == '' then
    at(queue)
    id = redis.call('HGET', K.keys, key) or ''
    -- Of a key that is remembered there is more than the id.
    if #id ~= 16 then return nil end
  end
  return id, visit(id)
end

-- @return whether it was parked
local function wake_up(id, state, list)
  if state[1] ~= 'scheduled' or redis.call('HEXISTS', K.parked, id) == 0 then return false end
  redis.call('ZREM', K.scheduled, id)
  put_state(id, 'waiting', state[2], state[3], NOW, state[5], 0, state[7])
  enter(list[3], list[1], id, list[5], list[9])
  Q.moves = true
  return true
end

local function signal(given, queue, key, first)
  local id, record = job_of(given, queue, key)
  if not record then return { 3, given ~= '' and given } end
  local state = state_of(id) or NEW_STATE
  if FINAL[state[1]] then return { AGAIN and redis.call('ZSCORE', (journal_keys(id)), ARGV[first]) and 0 or 1, id } end
  local plan = plan_entries(id, first, 1)
  if not plan then return { 2, id } end
  add_entries(plan)
  return { 0, id, wake_up(id, state, (facts(record))) and QUEUE }
end

local outcomes = {}
for i = 3, #ARGV, 5 do
  if read_bytes >= LARGE then break end
  outcomes[#outcomes + 1] = signal(ARGV[i], ARGV[i + 1], ARGV[i + 2], i + 3)
end
flush()
return outcomes
