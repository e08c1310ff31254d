-- What scripts that tell all about a job share.

-- All there is to know: [id, letter, attempt, due, started, finished (of a running one: when its lease ends), worker, progress,
-- error, result, record].
local function described(K, id, record, state, extras)
  local letter, attempt, due, started, finished, worker = 'w', 0, 0, 0, 0, ''
  if state then
    local _
    letter, _, _, attempt, due, started, finished, worker = decode(state)
    if letter == 'r' then finished = tonumber(redis.call('ZSCORE', K.running, id)) end
  end
  local function extra(key)
    return extras[key] and redis.call('HGET', key, id) or NIL
  end
  return table.concat({
    '\155', bin(id), cmsgpack.pack(letter), cmsgpack.pack(attempt), cmsgpack.pack(due), cmsgpack.pack(started),
    cmsgpack.pack(finished), worker == '' and NIL or worker, extra(K.progress), extra(K.errors), extra(K.results), bin(record),
  })
end

local function extras_of(K)
  local extras = {}
  for _, key in ipairs({ K.results, K.progress, K.errors }) do
    extras[key] = redis.call('EXISTS', key) == 1
  end
  return extras
end
