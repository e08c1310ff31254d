-- @include common.lua
-- @include jobs.lua
-- outcomes: what has become of jobs, without their data.
-- Head: nothing further.
-- In:  ids.
-- Out: per id: nil: unknown; else [queue, state, attempt, attempts, error, result]; error, result: nil if there is none. None of the last
--      ones where jobs are large: send those again.
-- Invariant: changes no job. Where one is not finished, its queue is marked as watched, for the bell when it is.

local FINAL = { done = true, dead = true, cancelled = true }
local out, bytes = {}, 0

local function watch()
  if Q.is_watched then return end
  Q.is_watched = true
  local mark = redis.call('HGET', K.queue, 'watched')
  if mark and math.abs(NOW - mark) <= 900 then return end
  may_write()
  redis.call('HSET', K.queue, 'watched', NOW)
end

for i = 3, #ARGV do
  if bytes + read_bytes >= LARGE then break end
  local id, one = ARGV[i], false
  local record = record_of(id)
  if record then
    at(queue_of(record))
    local state, facts = state_of(id) or NEW_STATE, facts(record)
    local error, result = redis.call('HGET', K.errors, id), redis.call('HGET', K.results, id)
    bytes = bytes + #(error or '') + #(result or '')
    one = { queue_of(record), state[1], state[3], facts[4], error, result }
    if not FINAL[state[1]] then watch() end
  end
  out[i - 2] = one
end
return out
