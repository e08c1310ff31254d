-- The groups of a grouped queue: their records, and where each of them stands. Included before `limits.lua`, whose `limits_of` uses it.
-- A group is always in the one of these places that its record names. Only a claim moves it (`place`, then `move`):
--   tickets   its first job may start
--   held      its rate or a pause holds its first job, until a time that is known
--   blocked   as many of its jobs run as may: an ending will add it to `touched`
--   nowhere   none of its jobs waits

local function groups_of(L, group_running, group_rate)
  local K = K
  local KEEP_UNUSED = 10000 -- ms for which a group without jobs is kept after its last start
  local NOWHERE, BLOCKED, HELD = -3, -2, -1
  local virtual, loaded = L.virtual, {}
  L.NOWHERE, L.BLOCKED, L.HELD = NOWHERE, BLOCKED, HELD

  -- Of groups without limits of their own, and of jobs without a group.
  local COMMON = { running = group_running, rate = group_rate, weight = 1 }
  local NAMELESS = { running = false, rate = false, weight = 1 }
  local function limits_with(name, own)
    local common = name == '' and NAMELESS or COMMON
    return own and { running = own[1] or common.running, rate = own[2] or common.rate, weight = own[3] or 1 } or common
  end

  function L.limit_with(group, own)
    group.own, group.limits, group.changed = own, limits_with(group.name, own), true
  end

  -- Where it stands in Redis: its ticket, HELD, BLOCKED or NOWHERE.
  local function standing(group)
    if group.at < 0 then return group.at end
    return struct.pack('>BdI6c0', 9 - group.at, group.virtual[group.at + 1], group.place, group.name)
  end

  -- `at`: the priority of its ticket, or where else it is to stand. `stands`: where it stands as yet. `place`: of the job that its ticket
  -- is for. `virtual`: per priority, from 0. `first`, `second`: jobs of its line; nil: not read yet, false: there is none. `known`: it has
  -- a record. `changed`, `counted`: `groups`, `slots` are to be written.
  local function load(name, packed, slots)
    local kept = packed and cmsgpack.unpack(packed) or {}
    local own = kept[4] or false
    local group = {
      name = name, known = packed, runs = tonumber(slots) or 0,
      at = kept[1] or NOWHERE, place = kept[2] or 0, virtual = kept[3] or {}, own = own, limits = limits_with(name, own),
      full = kept[5] or 0, full_cost = kept[6] or 1, paused_until = kept[7] or 0, pause_length = kept[8] or 0,
      stands = nil, first = nil, second = nil, changed = false, counted = false,
    }
    group.stands = standing(group)
    loaded[name] = group
    return group
  end

  -- @return the groups of these names
  function L.groups(names)
    local records, slots, groups = hmget(K.groups, names), hmget(K.slots, names), {}
    for i, name in ipairs(names) do groups[i] = loaded[name] or load(name, records[i], slots[i]) end
    return groups
  end

  function L.group(name) return loaded[name] or L.groups({ name })[1] end

  local function record_of(group)
    local list = { group.at, group.place, group.virtual }
    local has_rate = group.full > 0 or group.paused_until > 0
    if group.own or has_rate then list[4] = group.own end
    if has_rate then list[5], list[6], list[7], list[8] = group.full, group.full_cost, group.paused_until, group.pause_length end
    return cmsgpack.pack(list)
  end

  function L.save_groups()
    L.move()
    local records, names, slots = {}, {}, {}
    for name, group in pairs(loaded) do
      if group.changed then records[#records + 1], records[#records + 2] = name, record_of(group) end
      if group.changed and not group.known then names[#names + 1], names[#names + 2] = '0', name end
      if group.counted then slots[#slots + 1], slots[#slots + 2] = name, text(group.runs) end
    end
    call('HSET', K.groups, records)
    call('ZADD', K.names, names)
    call('HSET', K.slots, slots)
  end

  local function job_in(group, entry)
    local behind, place, id, cost = struct.unpack(IN_LINE, entry, #group.name + 2)
    return { priority = 9 - behind, place = place, id = id, cost = cost, entry = entry }
  end

  -- Reads two jobs of a line at once: when the first one starts, the group's next ticket is for the second one.
  -- @param entry of `lines`; nil: from the first one. @return the first job of the line behind it, or false
  local function search(group, entry)
    local name = group.name
    local from = entry and '(' .. entry or '[' .. name .. '\0'
    local found = redis.call('ZRANGEBYLEX', K.lines, from, '(' .. name .. '\1', 'LIMIT', 0, 2)
    group.second = found[2] or false
    return found[1] and job_in(group, found[1]) or false
  end

  -- @return the first job of its line that has not started in this call: priority, place, id, cost, entry; or false
  function L.first(group)
    if group.first == nil then group.first = search(group) end
    return group.first
  end

  local function behind_first(group)
    local entry = group.second
    if entry == nil then return search(group, group.first.entry) end
    group.second = nil
    return entry and job_in(group, entry)
  end

  -- How many jobs wait in its line.
  function L.count_waiting(group)
    return redis.call('ZLEXCOUNT', K.lines, '[' .. group.name .. '\0', '(' .. group.name .. '\1')
  end

  function L.bound_of(group)
    return L.bound(group.limits.rate, group.full, group.full_cost, group.paused_until, group.pause_length)
  end

  -- @return ms until the group may start a job of this cost; false: as many run as may
  function L.wait_of(group, cost)
    local limits = group.limits
    if limits.running and group.runs >= limits.running then return false end
    if not limits.rate and group.paused_until <= NOW then return 0 end
    local full, until_time = L.bound_of(group)
    return L.wait_for(limits.rate, full, until_time, cost)
  end

  -- @return ms until the group may start its first job; false: as many run as may, or none waits
  function L.startable_in(group)
    local first = L.first(group)
    return first and L.wait_of(group, first.cost)
  end

  local function time_at(group, priority)
    local times = group.virtual
    for at = #times + 1, priority + 1 do times[at] = 0 end
    return times[priority + 1]
  end

  -- The first job of the group, which has a ticket, runs. goes_on: it is not the first one of a turn.
  function L.start_first(group, goes_on)
    local job, limits, at = group.first, group.limits, group.at + 1
    local time = group.virtual[at]
    if not goes_on and virtual[at] < time then virtual[at] = time end
    group.virtual[at] = time + job.cost / limits.weight
    if limits.rate then group.full, group.full_cost = L.full_after(limits.rate, group.full, job.cost), job.cost end
    group.runs, group.counted, group.changed = group.runs + 1, true, true
    group.first = behind_first(group)
  end

  local function keep_bound(group)
    if not group.limits.rate and group.paused_until <= NOW then return end
    local full, until_time = L.bound_of(group)
    if full == group.full and until_time == group.paused_until then return end
    group.full, group.paused_until, group.changed = full, until_time, true
  end

  local placed = {}

  -- Decides where a group is to stand. `move` brings it there.
  function L.place(group)
    local first = L.first(group)
    if first then keep_bound(group) end
    local wait, at, place = L.startable_in(group), NOWHERE, 0
    if first and not wait then at = BLOCKED
    elseif wait and wait > 0 then at, group.held_until = HELD, NOW + wait
    elseif wait then at, place = first.priority, first.place end
    -- To wait or to idle earns no credit: a ticket begins at the queue's virtual time at least.
    if at >= 0 and at ~= group.at then group.virtual[at + 1] = math.max(time_at(group, at), virtual[at + 1]) end
    if at ~= group.at or place ~= group.place then group.at, group.place, group.changed = at, place, true end
    placed[#placed + 1] = group
  end

  -- Many at a time, so that a start costs no command of its own.
  function L.move()
    local gone, freed, unblocked, tickets, held, blocked, unused = {}, {}, {}, {}, {}, {}, {}
    for _, group in ipairs(placed) do
      local name, before, now = group.name, group.stands, standing(group)
      if now ~= before then
        if before == HELD then freed[#freed + 1] = name
        elseif before == BLOCKED then unblocked[#unblocked + 1] = name
        elseif before ~= NOWHERE then gone[#gone + 1] = before end
        if now == BLOCKED then blocked[#blocked + 1] = name
        elseif group.at >= 0 then tickets[#tickets + 1], tickets[#tickets + 2] = '0', now end
        group.stands = now
      end
      if now == HELD then held[#held + 1], held[#held + 2] = text(group.held_until), name end
      if not group.first and not group.own then
        local time = math.max(NOW + KEEP_UNUSED, group.paused_until, math.ceil(group.full / 1000))
        unused[#unused + 1], unused[#unused + 2] = text(time), name
      end
    end
    placed = {}
    call('ZREM', K.tickets, gone)
    call('ZREM', K.held, freed)
    call('SREM', K.blocked, unblocked)
    call('ZADD', K.tickets, tickets)
    call('ZADD', K.held, held)
    call('SADD', K.blocked, blocked)
    call('ZADD', K.unused, unused)
    if #unused > 0 then note_end(NOW + KEEP_UNUSED) end
  end

  -- The next group that has waiting jobs or is known, after that name; nil: the first.
  function L.next_name(name)
    local entry = redis.call('ZRANGEBYLEX', K.lines, name and '[' .. name .. '\1' or '-', '+', 'LIMIT', 0, 1)[1]
    local waiting = entry and string.sub(entry, 1, string.find(entry, '\0', 1, true) - 1)
    local known = redis.call('ZRANGEBYLEX', K.names, name and '(' .. name or '-', '+', 'LIMIT', 0, 1)[1]
    -- Redis compares bytes; Lua would compare as the server's locale does.
    local is_known = known and (not waiting or redis.call('ZLEXCOUNT', K.names, '[' .. known, '(' .. waiting) > 0)
    return is_known and known or waiting
  end

  -- Forgets groups that have no jobs and no limits of their own. @return how many it has looked at, `limit` at most
  function L.forget_groups(limit)
    local names = {}
    if limit > 0 then names = redis.call('ZRANGEBYSCORE', K.unused, '-inf', text(NOW), 'LIMIT', 0, limit) end
    if #names == 0 then return 0 end
    local forgotten, later = {}, {}
    local touched = redis.call('SMISMEMBER', K.touched, unpack(names))
    for i = 1, #names do
      local group = L.group(names[i])
      -- One to which something has happened, or that has waiting jobs or limits, comes back to `unused` with a later claim.
      if touched[i] == 0 and not group.own and not L.first(group) then
        local time = group.runs > 0 and NOW + KEEP_UNUSED or math.max(group.paused_until, group.full / 1000)
        if time > NOW then later[#later + 1], later[#later + 2] = text(time), group.name
        else forgotten[#forgotten + 1] = group.name end
      end
    end
    call('ZREM', K.unused, names)
    call('ZADD', K.unused, later)
    call('HDEL', K.groups, forgotten)
    call('HDEL', K.slots, forgotten)
    call('ZREM', K.names, forgotten)
    return #names
  end
end
