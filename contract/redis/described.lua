-- What scripts that tell all about a job share.

local described_bytes, MOST_BYTES = 0, 4194304 -- of one answer, about

-- Adds all there is to know to a list: id, state, attempt, due, started, finished (of a running one: when its lease ends), worker, progress,
-- error, result, record. Absent: false.
local function describe(K, out, id, record, state)
  state = state and cmsgpack.unpack(state) or { 'waiting', 0, 0, 0, 0, 0, false }
  local finished = state[1] == 'running' and tonumber(redis.call('ZSCORE', K.running, id)) or state[6]
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5], out[n + 6] = id, state[1], state[3], state[4], state[5], finished
  out[n + 7], out[n + 8] = state[7], redis.call('HGET', K.progress, id)
  out[n + 9], out[n + 10], out[n + 11] = redis.call('HGET', K.errors, id), redis.call('HGET', K.results, id), record
  described_bytes = described_bytes + #(out[n + 8] or '') + #(out[n + 9] or '') + #(out[n + 10] or '') + #record
end
