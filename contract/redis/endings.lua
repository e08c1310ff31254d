-- Needs waiting.lua. What scripts that change jobs share: what they note in `Q` of each queue, and how it is written once, at the end.
--   totals     by name: so often it happened
--   ended      ids of jobs that ended; ran: those of them that ran, and were cancelled or removed
--   freed      by group: how many of its jobs run no more
--   left       jobs that waited, were scheduled or blocked have left the queue: there is room
--   moves      jobs entered or left `scheduled`
--   soon       a job is due soon; unasked: see `wake`; stirs: a limit may allow another start

local function add_total(name, count) Q.totals[name] = (Q.totals[name] or 0) + (count or 1) end

local function note_ended(id)
  local ended = Q.ended or {}
  ended[#ended + 1] = id
  Q.ended = ended
end

-- A job of a grouped queue runs no more.
local function free_slot(group)
  Q.freed = Q.freed or {}
  Q.freed[group or ''] = (Q.freed[group or ''] or 0) + 1
end

local function freed_slots()
  local names, counts, touched = {}, {}, {}
  for name in pairs(Q.freed) do names[#names + 1] = name end
  local slots = hmget(K.slots, names)
  for first = 1, #names, MANY do
    local some = { unpack(names, first, math.min(first + MANY - 1, #names)) }
    for i, is_blocked in ipairs(redis.call('SMISMEMBER', K.blocked, unpack(some))) do
      if is_blocked == 1 then touched[#touched + 1] = some[i] end
    end
  end
  for i, name in ipairs(names) do
    counts[#counts + 1], counts[#counts + 2] = name, text(math.max(0, (tonumber(slots[i]) or 0) - Q.freed[name]))
  end
  call('HSET', K.slots, counts)
  call('SADD', K.touched, touched)
  Q.freed = nil
end

-- Writes what was noted of the queue that the script is at.
local function flush_queue()
  local q = Q
  if q.freed then freed_slots() end
  if q.moves then note_due() end
  for name, count in pairs(q.totals) do count_total(name, count) end
  if entered() or q.soon then wake(q.unasked or q.limits)
  elseif q.limits and q.stirs and tonumber(redis.call('HGET', K.queue, 'waiting') or 0) > 0 then wake(true) end
  if q.ran then ring('cancelled', q.ran, q.unasked and '') end
  if q.left then roomy() end
  -- Rings if a process looked a short while ago for a job that is not finished.
  if q.ended and recent(redis.call('HGET', K.queue, 'watched')) then ring('finished', q.ended, q.unasked and '') end
  q.moves, q.totals, q.soon, q.ran, q.left, q.ended, q.stirs = nil, {}, nil, nil, nil, nil, nil
end

local function flush()
  for i = 1, #order do
    at(order[i].name)
    flush_queue()
  end
end

local function forget_journals(ids)
  local keys = {}
  for i, kept in ipairs(hmget(K.journals, ids)) do
    if kept then keys[#keys + 1], keys[#keys + 2] = journal_keys(ids[i]) end
  end
  if #keys == 0 then return end
  call('HDEL', K.journals, ids)
  call('HDEL', K.parked, ids)
  redis.call('UNLINK', unpack(keys))
end

-- Jobs that are kept no longer, at most as many as one call has. Needs graph.lua.
local function forget(ids)
  if #ids == 0 then return end
  forget_links(ids)
  if Q.steps then forget_journals(ids) end
  if redis.call('EXISTS', K.kept) == 1 then
    call('ZREM', K.kept, ids)
    call('HDEL', K.keptFrom, ids)
  end
  call('HDEL', K.jobs, ids)
  call('HDEL', K.states, ids)
  for _, key in ipairs({ K.results, K.errors }) do
    if redis.call('EXISTS', key) == 1 then call('HDEL', key, ids) end
  end
  if redis.call('EXISTS', K.progress) == 0 then return end
  local logs = {}
  for i = 1, #ids do logs[i] = ids[i] .. 'l' end
  call('HDEL', K.progress, ids)
  call('HDEL', K.progress, logs)
end
