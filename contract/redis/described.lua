-- What scripts that tell all about a job share.

-- Adds all there is to know to a list: id, state, fence, attempt, due, started, finished (of a running one: when its lease ends), worker,
-- progress, error, result, record, log, further. Absent: false. due: of a follower, minus the time from which it may start. further: of a
-- blocked job, one with a journal or a parked one a list [waits, entries, parked]. waits: of a blocked job, `c` or `r`: its onDead, and for
-- how many it waits; entries: how many its journal has; parked: of a parked job, for what it waits.
-- @param journal, parked of `journals` and `parked`. @return how many bytes
local function describe(out, id, record, state, journal, parked)
  state = state and cmsgpack.unpack(state) or NEW_STATE
  at(queue_of(record))
  local finished = state[1] == 'running' and tonumber(redis.call('ZSCORE', K.running, id)) or state[6]
  local told = redis.call('HMGET', K.progress, id, id .. 'l')
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] = id, state[1], state[2], state[3]
  out[n + 5], out[n + 6] = state[8] and -state[8] or state[4], state[5]
  out[n + 7], out[n + 8], out[n + 9] = finished, state[7], told[1]
  out[n + 10], out[n + 11], out[n + 12] = redis.call('HGET', K.errors, id), redis.call('HGET', K.results, id), record
  out[n + 13], out[n + 14] = told[2], false
  local waits, count = false, journal and cmsgpack.unpack(journal)[1] or 0
  if state[1] == 'blocked' then
    local value = tonumber(redis.call('HGET', K.waits, id)) or 0
    waits = (value % 2 == 1 and 'r' or 'c') .. math.floor(value / 2)
  end
  if waits or count > 0 or parked then out[n + 14] = { waits, count > 0 and count, parked or false } end
  return #(out[n + 9] or '') + #(out[n + 10] or '') + #(out[n + 11] or '') + #(told[2] or '') + #(parked or '') + #record
end

-- Describes those that are known here, unless jobs are large: one answer has some 4 MiB. How large they are is not known before they are
-- read, so the first step is a small one. passes(id, record): whether one is described; nil: all. @return how many of the last ids are left
-- to another call
local function describe_all(out, ids, passes)
  local FEW, STEP, MOST = 8, 500, 4194304
  local states, at, most, bytes, largest = hmget(K.states, ids), 1, FEW, 0, 1
  local has_journals = redis.call('EXISTS', POND.journals) == 1
  while at <= #ids and bytes < MOST do
    local some = {}
    for i = at, math.min(at + most - 1, #ids) do some[#some + 1] = ids[i] end
    local records, journals, parked = hmget(K.jobs, some), {}, {}
    if has_journals then journals, parked = hmget(K.journals, some), hmget(K.parked, some) end
    for i = 1, #some do
      local size = #(records[i] or '')
      if size > 0 and (not passes or passes(some[i], records[i])) then
        size = describe(out, some[i], records[i], states[at + i - 1], journals[i], parked[i])
      end
      bytes, largest = bytes + size, math.max(largest, size)
    end
    at = at + #some
    most = math.max(1, math.min(STEP, math.floor((MOST - bytes) / largest)))
  end
  return #ids - at + 1
end
