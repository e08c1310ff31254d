-- The groups of a grouped queue: their records, their lines, and which of them have a ticket. Included before `limits.lua`, whose
-- `limits_of` uses it. Groups are read and written many at a time: a start costs no command of its own.
-- Most of this runs at each start, so functions of libraries are local and no table is made without need.
-- Needs the keys: queue, limits, lines, slots, groups, names; to claim also tickets, held, unused, @ends.

local function groups_of(K, L, group_running, group_rate)
  local HAND = 8 -- jobs that a group takes from its line at once
  local KEEP_UNUSED = 10000 -- ms for which a group without jobs is kept after its last start
  local NONE, HELD = -2, -1 -- where it has no ticket: it may start no job, or its rate or pause holds it
  local GROUP, TIME = '>ddI6HbI6BBBBd', '>Bd' -- a record of `groups` up to its first virtual time; a further one
  local RECORD = GROUP .. 'c0c0c0' -- a whole one: with further times, limits and hand
  local FIRST, COST = '>BI6', '>I4' -- how a job in the hand begins and ends
  local pack, fields, sub = struct.pack, struct.unpack, string.sub
  local virtual, wait_for = L.virtual, L.wait_for
  local all, fresh, loaded, marks = {}, {}, {}, 0
  L.HELD = HELD

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

  -- What `listed` is to be.
  local function listed_as(group)
    if group.ticket < 0 then return group.ticket == HELD and HELD end
    return pack('>BdI6c0', 9 - group.ticket, group.virtual[group.ticket + 1], group.place, group.name)
  end

  -- `virtual`: by priority + 1, nil: 0. `hand`: from `at` on, the jobs that were taken from the line. `line`: 0: no job is in the line, 1:
  -- one may be. `listed`: its ticket in `tickets`, HELD if it is in `held`, else false; nil: not asked for yet. `held_until`: where it is
  -- held now. `marked`: its number in `slots` is below 0. `changed`, `counted`: `groups`, `slots` are to be written.
  local function load(name, packed, slots)
    local runs, ticket, place, line, bytes, further, priority, time, at = tonumber(slots) or 0, NONE, 0, 1, 0, 0, 0, 0, 1
    local full, paused_until, pause_length, full_cost = 0, 0, 0, 1
    if packed then
      full, paused_until, pause_length, full_cost, ticket, place, line, bytes, further, priority, time, at = fields(GROUP, packed)
    end
    local times, own = packed and { [priority + 1] = time } or {}, false
    for _ = 1, further do
      priority, time, at = fields(TIME, packed, at)
      times[priority + 1] = time
    end
    if bytes > 0 then
      own = cmsgpack.unpack(sub(packed, at, at + bytes - 1))
      at = at + bytes
    end
    -- All fields at once: a table that grows beyond is made anew, twice as large.
    local group = {
      name = name, runs = runs < 0 and -runs or runs, marked = runs < 0, full = full, full_cost = full_cost, paused_until = paused_until,
      ticket = ticket, place = place, virtual = times, own = own,
      limits = own and limits_with(name, own) or name == '' and NAMELESS or COMMON,
      pause_length = pause_length, hand = packed or '', at = at, line = line, listed = nil, changed = false, counted = false,
    }
    loaded[name] = group
    all[#all + 1] = group
    if not packed then fresh[#fresh + 1] = group end
    return group
  end

  function L.group(name)
    return loaded[name] or load(name, redis.call('HGET', K.groups, name), redis.call('HGET', K.slots, name))
  end

  -- @param groups is filled with those of the names
  function L.load_all(names, groups)
    local states, slots = hmget(K.groups, names), hmget(K.slots, names)
    for i = 1, #names do
      local name = names[i]
      groups[i] = loaded[name] or load(name, states[i], slots[i])
    end
    return groups
  end

  -- Groups whose ticket may have changed.
  local moved = {}

  -- It had its turn: its ticket goes, unless `place` gives it another one.
  function L.use_ticket(group)
    group.listed = false
    moved[#moved + 1] = group
  end

  -- ms since 1970: before, the group must not be forgotten. Each of its starts is followed by `place`, so that this is called then.
  local function kept_until(group)
    return math.max(NOW + KEEP_UNUSED, group.paused_until, math.ceil(group.full / 1000))
  end

  -- Writes who has a ticket, who is held, and whom a sweep may forget.
  function L.move_tickets()
    local gone, tickets, freed, held, unused, soonest = {}, {}, {}, {}, {}, math.huge
    for i = 1, #moved do
      local group = moved[i]
      local listed, ticket = group.listed, listed_as(group)
      if ticket == HELD then held[#held + 1], held[#held + 2] = text(group.held_until), group.name end
      if ticket ~= listed then
        if listed == HELD then freed[#freed + 1] = group.name elseif listed then gone[#gone + 1] = listed end
        if ticket and ticket ~= HELD then
          local n = #tickets
          tickets[n + 1], tickets[n + 2] = '0', ticket
        end
        group.listed, group.changed = ticket, true
      end
      if group.at > #group.hand and not group.own then
        local time = kept_until(group)
        unused[#unused + 1], unused[#unused + 2] = text(time), group.name
        soonest = math.min(soonest, time)
      end
    end
    moved = {}
    call('ZREM', K.tickets, gone)
    call('ZREM', K.held, freed)
    call('ZADD', K.tickets, tickets)
    call('ZADD', K.held, held)
    call('ZADD', K.unused, unused)
    if soonest < math.huge then note_end(K, soonest) end
  end

  local function record_of(group)
    local times, own, others, count = group.virtual, group.own and cmsgpack.pack(group.own) or '', '', 0
    local at, time = next(times)
    if at and next(times, at) then
      for other, its in next, times, at do
        others, count = others .. pack(TIME, other - 1, its), count + 1
      end
    end
    return pack(RECORD, group.full, group.paused_until, group.pause_length, group.full_cost, group.ticket, group.place,
      group.line, #own, count, (at or 1) - 1, time or 0,
      others, own, sub(group.hand, group.at))
  end

  function L.save_groups()
    L.move_tickets()
    local states, names, slots, n, m = {}, {}, {}, 0, 0
    for i = 1, #all do
      local group = all[i]
      if group.changed then
        states[n + 1], states[n + 2] = group.name, record_of(group)
        n = n + 2
      end
      if group.counted then
        slots[m + 1], slots[m + 2] = group.name, tostring(group.marked and -group.runs or group.runs)
        m = m + 2
      end
    end
    for i = 1, #fresh do
      if fresh[i].changed then names[#names + 1], names[#names + 2] = '0', fresh[i].name end
    end
    call('HSET', K.groups, states)
    call('ZADD', K.names, names)
    call('HSET', K.slots, slots)
    if marks ~= 0 then redis.call('HINCRBY', K.queue, 'atLimit', marks) end
  end

  local function in_line(name, limit)
    return redis.call('ZRANGEBYLEX', K.lines, '[' .. name .. '\0', '(' .. name .. '\1', 'LIMIT', 0, limit)
  end

  local function earlier(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end

  -- The first waiting job of a group: { 9 minus the priority, place, id, cost }, or false. Changes nothing.
  function L.first(group)
    local first = group.at <= #group.hand and { fields(IN_LINE, group.hand, group.at) }
    local entry = in_line(group.name, 1)[1]
    local other = entry and { fields(IN_LINE, entry, #group.name + 2) }
    return other and (not first or earlier(other, first)) and other or first
  end

  -- Takes the first jobs of a line into the hand, which is empty.
  local function take_hand(group)
    local entries = group.line > 0 and in_line(group.name, HAND) or {}
    group.hand, group.at, group.changed, group.line = '', 1, true, #entries == HAND and 1 or 0
    if #entries == 0 then return end
    redis.call('ZREMRANGEBYLEX', K.lines, '[' .. entries[1], '[' .. entries[#entries])
    for i = 1, #entries do entries[i] = sub(entries[i], #group.name + 2) end
    group.hand = table.concat(entries)
  end

  -- Jobs came into the line. If one of them is before the last in the hand, all go back, and the first are taken anew.
  function L.look_into_line(group)
    group.line, group.changed = 1, true
    if group.at > #group.hand then return end
    local start = group.name .. '\0'
    local before = '(' .. start .. sub(group.hand, -LINE_ENTRY)
    if #redis.call('ZRANGEBYLEX', K.lines, '[' .. start, before, 'LIMIT', 0, 1) == 0 then return end
    local back = {}
    for at = group.at, #group.hand, LINE_ENTRY do
      back[#back + 1], back[#back + 2] = '0', start .. sub(group.hand, at, at + LINE_ENTRY - 1)
    end
    call('ZADD', K.lines, back)
    take_hand(group)
  end

  -- How many jobs wait in its line and its hand.
  function L.count_waiting(group)
    local name = group.name
    return redis.call('ZLEXCOUNT', K.lines, '[' .. name .. '\0', '(' .. name .. '\1') + (#group.hand - group.at + 1) / LINE_ENTRY
  end

  -- @return whether its hand has a job
  local function has_first(group)
    if group.at <= #group.hand then return true end
    if group.line > 0 then take_hand(group) end
    return group.hand ~= '' and group.at <= #group.hand
  end

  function L.bound_of(group)
    return L.bound(group.limits.rate, group.full, group.full_cost, group.paused_until, group.pause_length)
  end

  local function keep_bound(group)
    local full, until_time = L.bound_of(group)
    if full == group.full and until_time == group.paused_until then return end
    group.full, group.paused_until, group.changed = full, until_time, true
  end

  -- @return ms until the group may start a job of this cost; false: as many run as may
  local function wait_of(group, cost)
    local limits = group.limits
    if limits.running and group.runs >= limits.running then return false end
    if not limits.rate and group.paused_until <= NOW then return 0 end
    local full, until_time = L.bound_of(group)
    return wait_for(limits.rate, full, until_time, cost)
  end

  L.wait_of = wait_of

  -- @return 9 minus the priority, place, id and cost of its first job, if that may start now and its ticket is for it
  function L.next_job(group)
    if not has_first(group) then return end
    local before, place, id, cost = fields(IN_LINE, group.hand, group.at)
    if 9 - before == group.ticket and wait_of(group, cost) == 0 then return before, place, id, cost end
  end

  -- The next job runs. goes_on: it is not the first one of a turn.
  function L.start_job(group, at, cost, goes_on)
    local limits, times = group.limits, group.virtual
    if not goes_on and virtual[at] < times[at] then virtual[at] = times[at] end
    times[at] = times[at] + cost / limits.weight
    if limits.rate then group.full, group.full_cost = L.full_after(limits.rate, group.full, cost), cost end
    group.runs, group.at = group.runs + 1, group.at + LINE_ENTRY
    group.counted, group.changed = true, true
  end

  -- @return ms until the group may start its first job, as `first` gave it; false: as many run as may, or none waits
  function L.group_startable(group, first) return first and wait_of(group, first[4]) end

  -- The next group that has waiting jobs or is known, after that name; nil: the first.
  function L.next_name(name)
    local entry = redis.call('ZRANGEBYLEX', K.lines, name and '[' .. name .. '\1' or '-', '+', 'LIMIT', 0, 1)[1]
    local waiting = entry and string.sub(entry, 1, string.find(entry, '\0', 1, true) - 1)
    local known = redis.call('ZRANGEBYLEX', K.names, name and '(' .. name or '-', '+', 'LIMIT', 0, 1)[1]
    -- Redis compares bytes; Lua would compare as the server's locale does.
    local is_known = known and (not waiting or redis.call('ZLEXCOUNT', K.names, '[' .. known, '(' .. waiting) > 0)
    return is_known and known or waiting
  end

  -- Gives a group its ticket, or has it held, or neither.
  function L.place(group)
    local had, had_place, marked = group.ticket, group.place, false
    if group.listed == nil then
      group.listed = listed_as(group)
      moved[#moved + 1] = group
    end
    group.ticket = NONE
    if has_first(group) then
      if group.limits.rate or group.paused_until > NOW then keep_bound(group) end
      local before, place = fields(FIRST, group.hand, group.at)
      local wait = wait_of(group, group.limits.rate and fields(COST, group.hand, group.at + LINE_ENTRY - 4))
      if not wait then marked = true
      elseif wait > 0 then
        group.ticket, group.held_until = HELD, NOW + wait
      else
        group.ticket, group.place = 9 - before, place
        -- A ticket that is new at its priority begins at the queue's virtual time: to wait or to idle earns no credit.
        if had ~= group.ticket then
          local times, at = group.virtual, group.ticket + 1
          times[at] = math.max(times[at] or 0, virtual[at])
        end
      end
    end
    -- Whoever ends one of its jobs says so then.
    if marked ~= group.marked then
      group.marked, group.counted = marked, true
      marks = marks + (marked and 1 or -1)
    end
    if had ~= group.ticket or had_place ~= group.place then group.changed = true end
  end

  -- Forgets groups that have no jobs and no limits of their own. @return how many it has looked at, `limit` at most
  function L.forget_groups(limit)
    local names = {}
    if limit > 0 then names = redis.call('ZRANGEBYSCORE', K.unused, '-inf', text(NOW), 'LIMIT', 0, limit) end
    if #names == 0 then return 0 end
    local marks, forgotten, later = {}, {}, {}
    for i = 1, #names do marks[2 * i - 1], marks[2 * i] = '-' .. names[i], '+' .. names[i] end
    local touched = redis.call('SMISMEMBER', K.touched, unpack(marks))
    L.load_all(names, {})
    for i = 1, #names do
      local group = loaded[names[i]]
      -- One to which something has happened, or that has waiting jobs or limits, comes back to `unused` with a later claim.
      if touched[2 * i - 1] + touched[2 * i] == 0 and not group.own and not L.first(group) then
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
