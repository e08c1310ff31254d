-- What `push`, `push-once`, `fire` and `stage` share: jobs that are stored. Their heads and items are those of `push`.

local function ids_in(bytes)
  local ids = {}
  for at = 1, #bytes, 16 do ids[#ids + 1] = string.sub(bytes, at, at + 15) end
  return ids
end

-- What stage.lua does with jobs beside that: is_own(i, id): whether an earlier try of the same call has stored one that is there;
-- refuse(i, id): @return why one is not stored; is_doomed(): whether that one is to be
-- cancelled at once, so that it takes
-- no key and no capacity; store(i, id, place): it is stored; flush(): so are
-- all that came so far.
local STAGE = false

-- K: with slots and groups for push-once and stage alone.
-- fired: nil for a push. For a firing, a set of the ids that an earlier call has pushed; the others are stored even if there is no room.
-- @return what push.lua answers
local function push_jobs(K, ids, fired)
  local floor, all_values, which, sizes, partitions = HEAD[6], HEAD[7], HEAD[8], HEAD[9], HEAD[10]
  local settings = redis.call('HMGET', K.queue, 'listed', 'capacity', 'attempts', 'timeout', 'run', 'waiting', 'places', 'limits')
  GROUPED = settings[8] == 'groups'
  local listed = tonumber(settings[1]) == partitions
  if not listed and not floor then return {} end
  local attempts_of_queue, timeout_of_queue = tonumber(settings[3]) or DEFAULT.attempts, tonumber(settings[4]) or false

  if not settings[5] then new_run(K, floor) end

  local found = hmget(K.jobs, ids)
  local room = math.huge
  if settings[2] and not fired then
    room = settings[2] - (settings[6] or 0) - redis.call('ZCARD', K.scheduled) - redis.call('ZCARD', K.awaiting)
  end

  -- What follows the place in the records of all jobs with these values, and the byte before it: how many entries the list has.
  local function shared_of(value)
    local list = { NOW, value[1], value[4] or attempts_of_queue }
    local timeout = value[5] or timeout_of_queue
    local remember = value[10] and value[10][1]
    if remember then list[9], list[10] = NOW, remember end
    if remember then list[8] = value[9] or false end
    if value[9] then list[8] = value[9] end
    if value[8] or list[8] ~= nil then list[7] = value[8] or false end
    if value[7] or list[7] ~= nil then list[6] = value[7] or false end
    if timeout or list[6] ~= nil then list[5] = timeout or false end
    if value[6] or list[5] ~= nil then list[4] = value[6] or false end
    return string.char(0x90 + #list + 1), cmsgpack.pack(unpack(list))
  end

  listed = listed and 1 or 0
  local records, states, due_times, keys, outcomes = {}, {}, {}, {}, { listed }
  local place, taken, by_key, stored = tonumber(settings[7]) or 0, {}, {}, 0
  local stored_in_all, any_came, any_soon = 0, false, false
  local full, all_pushed, soon = false, true, false
  local data_at = 1
  local blocked_due, blocked
  local own_graph = STAGE and STAGE.graph

  -- Stores what has come so far.
  local function store()
    if stored > 0 then redis.call('HSET', K.queue, 'places', text(place)) end
    call('HSET', K.jobs, records)
    call('HSET', K.states, states)
    call('HSET', K.keys, keys)
    if STAGE then STAGE.flush() end
    if #due_times > 0 then
      call('ZADD', K.scheduled, due_times)
      note_due(K)
    end
    any_came = entered(K) or any_came
    any_soon = any_soon or soon
    stored_in_all = stored_in_all + stored
    records, states, due_times, keys, by_key, stored, soon = {}, {}, {}, {}, {}, 0, false
  end

  for i = 1, #ids do
    local id, value, data_from = ids[i], all_values[which and which[i] or 1], data_at
    data_at = data_at + sizes[i]
    local priority, key = value[1], value[7]
    local once = MEET and key and value[10]
    local existing = (found[i] or taken[id]) and id
    local follows, held = false, false
    if not existing and key then
      if once then store() end
      existing = by_key[key] or redis.call('HGET', K.keys, key)
      if existing and #existing > 16 then
        -- Remembered, until then.
        existing = tonumber(string.sub(existing, 17)) > NOW and string.sub(existing, 1, 16)
      elseif existing and once then
        -- What would be replaced may come to nothing as well.
        local follower = redis.call('HGET', K.keys, '\0' .. key)
        held = undecided(K, existing, own_graph) or follower and undecided(K, follower, own_graph)
        if not held then existing, follows = MEET(K, key, existing, value, string.sub(ARGV[4], data_from, data_at - 1), settings[8]) end
      end
    end
    if existing and not held and not taken[id] then held = undecided(K, existing, own_graph) end
    local is_own = AGAIN and found[i] and (not STAGE or STAGE.is_own(i, id))
    if not taken[id] and (is_own or fired and fired[id] and not found[i]) then
      outcomes[i + 1] = 0
      taken[id] = true
    elseif existing then
      outcomes[i + 1] = held or existing
      all_pushed = false
    elseif room <= 0 then
      outcomes[i + 1] = 1
      full, all_pushed = true, false
    elseif STAGE and STAGE.refuse(i, id) then
      outcomes[i + 1] = STAGE.refuse(i, id)
      all_pushed = false
    else
      local is_doomed = STAGE and STAGE.is_doomed()
      outcomes[i + 1] = 0
      if not is_doomed then room = room - 1 end
      taken[id] = true
      if not value.shared then value.size, value.shared = shared_of(value) end
      stored = stored + 1
      records[stored * 2 - 1] = id
      records[stored * 2] = value.size .. cmsgpack.pack(place) .. value.shared .. string.sub(ARGV[4], data_from, data_at - 1)
      if key and not is_doomed then
        if not follows then by_key[key] = id end
        keys[#keys + 1] = follows and '\0' .. key or key
        keys[#keys + 1] = id
      end
      local due = value[3] and math.max(NOW, value[3]) or NOW + (value[2] or 0)
      if once and once[3] then due = math.min(due, NOW + once[3]) end
      if follows then
        states[#states + 1] = id
        states[#states + 1] = cmsgpack.pack({ 'scheduled', 0, 0, NEVER, 0, 0, false, due })
        due_times[#due_times + 1] = text(NEVER)
        due_times[#due_times + 1] = id
        if STAGE then STAGE.store(i, id) end
      elseif STAGE then
        STAGE.store(i, id, place)
        if due ~= blocked_due then
          blocked_due, blocked = due, cmsgpack.pack({ 'blocked', 0, 0, math.min(due, NEVER - 1), 0, 0, false })
        end
        states[#states + 1] = id
        states[#states + 1] = blocked
      elseif due > NOW then
        due, soon = math.min(due, NEVER - 1), soon or due < NOW + SOON
        states[#states + 1] = id
        states[#states + 1] = cmsgpack.pack({ 'scheduled', 0, 0, due, 0, 0, false })
        due_times[#due_times + 1] = text(due)
        due_times[#due_times + 1] = id
      else
        enter(priority, place, id, value[6], value[9])
      end
      place = place + 1
    end
  end

  store()
  if not STAGE then count_total(K, 'pushed', stored_in_all) end
  if any_came or any_soon then wake(K, any_came == 'moved' and settings[8]) end
  if full then redis.call('HSET', K.queue, 'room', NOW) end
  return all_pushed and { listed } or outcomes
end
