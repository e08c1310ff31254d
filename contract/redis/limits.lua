-- What scripts share that know a queue's limits and groups: contract/operations.md, "Limits and turns". All in one function, so that a queue without
-- limits pays nothing for it. Use: `local limits = limits_of(K)`; what it changes of groups and of the queue is written by `limits.save()`.
-- Groups are read and written many at a time: a start costs no command of its own.
-- Needs the keys: limits, running, and of a grouped queue lines, slots, groups, names, touched; to claim also tickets, held, unused, @ends.

local function limits_of(K, grouped)
  local L = { limited = false }
  local MOST_GROUPS = 1000 -- that one call looks at, beside those of which it starts jobs
  local HAND = 8 -- jobs that a group takes from its line at once
  local KEEP_UNUSED = 10000 -- ms for which a group without jobs is kept after its last start
  local NONE, HELD = -2, -1 -- where it has no ticket: it may start no job, or its rate or pause holds it
  local GROUP, TIMES = '>ddbI6BB', 'dddddddddd' -- a record of `groups` up to its virtual times, and these
  local set, kept = {}, redis.call('HGETALL', K.limits)
  for i = 1, #kept, 2 do set[kept[i]] = kept[i + 1] end
  local function rate_in(name) return set[name] and cmsgpack.unpack(set[name]) or false end
  local function zeros() return { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } end
  local running, group_running = tonumber(set.running) or false, tonumber(set.groupRunning) or false
  local rate, group_rate = rate_in('rate'), rate_in('groupRate')
  local full, paused_until = tonumber(set.full) or 0, tonumber(set.pausedUntil) or 0
  local virtual = set.virtual and cmsgpack.unpack(set.virtual) or zeros()
  local runs = redis.call('ZCARD', K.running)
  L.settings = { running, rate, grouped, group_running, group_rate }
  L.limited = running or rate or group_rate

  -- Rates: times in microseconds.
  local function step_of(of) return math.ceil(of[2] * 1000 / of[1]) end

  -- Milliseconds until a rate and a pause allow a start.
  local function wait_for(of, its_full, until_time, cost)
    local wait = until_time > NOW and until_time - NOW or 0
    if not of then return wait end
    local burst = of[3] or math.max(1, math.floor(of[1] * 100 / of[2]))
    return math.max(wait, math.ceil((its_full - (math.max(burst, cost) - cost) * step_of(of)) / 1000) - NOW)
  end

  local function full_after(of, its_full, cost)
    return of and math.max(its_full, NOW * 1000) + cost * step_of(of) or its_full
  end

  local function full_without(of, its_full, started, cost)
    if not of then return its_full end
    local taken = cost * step_of(of)
    return its_full - math.min(taken, math.max(0, started * 1000 + taken - NOW * 1000))
  end

  -- @return ms until the queue may start a job of this cost; false: as many run as may
  function L.startable(cost)
    if running and runs >= running then return false end
    return wait_for(rate, full, paused_until, cost)
  end

  local function count_start(cost)
    runs = runs + 1
    full = full_after(rate, full, cost)
    L.changed = true
  end

  local loaded = {}

  -- @return the limits of a group: how many run, its rate, its weight
  local function limits_with(name, own)
    local common = name ~= ''
    return own and own[1] or (common and group_running), own and own[2] or (common and group_rate), own and own[3] or 1
  end

  function L.limit_with(group, own)
    group.own, group.changed = own, true
    group.running, group.rate, group.weight = limits_with(group.name, own)
  end

  local function ticket_of(group)
    return struct.pack('>BdI6', 9 - group.ticket, group.virtual[group.ticket + 1], group.place) .. group.name
  end

  -- `hand`: from `at` on, the jobs that were taken from the line. `first`: the first of them, once it was read; false: none waits. `listed`: its
  -- ticket in `tickets`, or false; nil: not asked for yet.
  local function load(name, packed, slots)
    local runs, full, paused_until, ticket, place, count, bytes, at = tonumber(slots) or 0, 0, 0, NONE, 0, 0, 0, 1
    if packed then full, paused_until, ticket, place, count, bytes, at = struct.unpack(GROUP, packed) end
    local virtual, own = {}, false
    if count > 0 then
      virtual = { struct.unpack('>' .. string.sub(TIMES, 1, count), packed, at) }
      at = table.remove(virtual)
    end
    if bytes > 0 then own = cmsgpack.unpack(string.sub(packed, at, at + bytes - 1)) end
    local running, rate, weight = limits_with(name, own)
    -- All fields at once: a table that grows is made anew each time.
    local group = {
      name = name, known = packed, runs = math.abs(runs), marked = runs < 0, full = full, paused_until = paused_until,
      ticket = ticket, place = place, virtual = virtual, own = own, running = running, rate = rate, weight = weight,
      hand = packed or '', at = at + bytes, first = nil, listed = nil, moved = false, changed = false, counted = false,
      held = ticket == HELD, held_until = nil,
    }
    loaded[name] = group
    return group
  end

  function L.group(name)
    return loaded[name] or load(name, redis.call('HGET', K.groups, name), redis.call('HGET', K.slots, name))
  end

  local function load_all(names)
    local states, slots = hmget(K.groups, names), hmget(K.slots, names)
    for i = 1, #names do
      if not loaded[names[i]] then load(names[i], states[i], slots[i]) end
    end
  end

  -- Tickets that were read, of groups whose jobs were started: the first in `tickets`.
  local moved, used = {}, 0

  -- ms since 1970: before, the group must not be forgotten. Each of its starts is followed by `place`, so that this is called then.
  local function kept_until(group)
    return math.max(NOW + KEEP_UNUSED, group.paused_until, math.ceil(group.full / 1000))
  end

  -- Writes who has a ticket, who is held, and whom a sweep may forget.
  local function move_tickets()
    if used > 0 then redis.call('ZREMRANGEBYRANK', K.tickets, 0, used - 1) end
    local gone, tickets, freed, held, unused, soonest = {}, {}, {}, {}, {}, math.huge
    for i = 1, #moved do
      local group = moved[i]
      local ticket = group.ticket >= 0 and ticket_of(group)
      if ticket ~= group.listed then
        if group.listed then gone[#gone + 1] = group.listed end
        if ticket then tickets[#tickets + 1], tickets[#tickets + 2] = '0', ticket end
        group.listed, group.changed = ticket, true
      end
      if group.ticket == HELD then
        held[#held + 1], held[#held + 2] = text(group.held_until), group.name
      elseif group.held then freed[#freed + 1] = group.name end
      if not group.first and not group.own then
        local time = kept_until(group)
        unused[#unused + 1], unused[#unused + 2] = text(time), group.name
        soonest = math.min(soonest, time)
      end
      if group.held ~= (group.ticket == HELD) then group.held, group.changed = not group.held, true end
      group.moved = false
    end
    moved, used = {}, 0
    call('ZREM', K.tickets, gone)
    call('ZREM', K.held, freed)
    call('ZADD', K.tickets, tickets)
    call('ZADD', K.held, held)
    call('ZADD', K.unused, unused)
    if soonest < math.huge then note_end(K, soonest) end
  end

  function L.save()
    move_tickets()
    if L.changed then
      redis.call('HSET', K.limits, 'full', text(full), 'pausedUntil', text(paused_until), 'virtual', cmsgpack.pack(virtual))
    end
    local states, names, slots = {}, {}, {}
    for name, group in pairs(loaded) do
      if group.changed then
        local times, own = group.virtual, group.own and cmsgpack.pack(group.own) or ''
        local count = #times
        states[#states + 1] = name
        states[#states + 1] = struct.pack(GROUP .. string.sub(TIMES, 1, count), group.full, group.paused_until, group.ticket, group.place, count, #own, unpack(times))
          .. own .. string.sub(group.hand, group.at)
        if not group.known then
          names[#names + 1] = '0'
          names[#names + 1] = name
        end
      end
      if group.counted then
        slots[#slots + 1] = name
        slots[#slots + 1] = tostring(group.marked and -group.runs or group.runs)
      end
    end
    call('HSET', K.groups, states)
    call('ZADD', K.names, names)
    call('HSET', K.slots, slots)
  end

  local function in_line(name, limit)
    return redis.call('ZRANGEBYLEX', K.lines, '[' .. name .. '\0', '(' .. name .. '\1', 'LIMIT', 0, limit)
  end

  local function earlier(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end

  -- The first waiting job of a group: { 9 minus the priority, place, id, cost }, or false. Changes nothing.
  function L.first(group)
    local first = group.at <= #group.hand and { struct.unpack(IN_LINE, group.hand, group.at) }
    local entry = in_line(group.name, 1)[1]
    local other = entry and { struct.unpack(IN_LINE, entry, #group.name + 2) }
    return other and (not first or earlier(other, first)) and other or first
  end

  -- Takes the first jobs of a line into the hand, which is empty.
  local function take_hand(group)
    local entries = in_line(group.name, HAND)
    group.hand, group.at, group.changed = '', 1, true
    if #entries == 0 then return end
    redis.call('ZREMRANGEBYLEX', K.lines, '[' .. entries[1], '[' .. entries[#entries])
    for i = 1, #entries do entries[i] = string.sub(entries[i], #group.name + 2) end
    group.hand = table.concat(entries)
  end

  -- Jobs came into the line. If one of them is before the last in the hand, all go back, and the first are taken anew.
  local function look_into_line(group)
    group.first = nil
    if group.at > #group.hand then return end
    local start = group.name .. '\0'
    local before = '(' .. start .. string.sub(group.hand, -LINE_ENTRY)
    if #redis.call('ZRANGEBYLEX', K.lines, '[' .. start, before, 'LIMIT', 0, 1) == 0 then return end
    local back = {}
    for at = group.at, #group.hand, LINE_ENTRY do
      back[#back + 1], back[#back + 2] = '0', start .. string.sub(group.hand, at, at + LINE_ENTRY - 1)
    end
    call('ZADD', K.lines, back)
    take_hand(group)
  end

  local function first_of(group)
    if group.first == nil then
      if group.at > #group.hand then take_hand(group) end
      group.first = group.hand ~= '' and { struct.unpack(IN_LINE, group.hand, group.at) }
    end
    return group.first
  end

  -- @return ms until the group may start its first job; false: as many run as may, or none waits
  function L.group_startable(group, first)
    if not first or group.running and group.runs >= group.running then return false end
    return wait_for(group.rate, group.full, group.paused_until, first[4])
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

  -- Gives a group its ticket, or has it held, or neither.
  local function place(group)
    local first = first_of(group)
    local wait = L.group_startable(group, first)
    local had, had_place = group.ticket, group.place
    if group.listed == nil then group.listed = had >= 0 and ticket_of(group) end
    if not wait then group.ticket = NONE
    elseif wait > 0 then
      group.ticket, group.held_until = HELD, NOW + wait
    else
      group.ticket, group.place = 9 - first[1], first[2]
      -- A ticket that is new at its priority begins at the queue's virtual time: to wait or to idle earns no credit.
      if had ~= group.ticket then
        local at, times = group.ticket + 1, group.virtual
        for i = #times + 1, at do times[i] = 0 end
        times[at] = math.max(times[at], virtual[at])
      end
    end
    -- Whoever ends one of its jobs says so then.
    local marked = not wait and first and true
    if marked ~= group.marked then group.marked, group.counted = marked, true end
    if had ~= group.ticket or had_place ~= group.place then group.changed = true end
    if not group.moved then
      group.moved = true
      moved[#moved + 1] = group
    end
  end

  -- Their names, or of those to which something happened, what it was before that: + jobs came into the line.
  local function look_at(names, touched)
    local arrived = {}
    if touched then
      for i = 1, #names do
        local name = string.sub(names[i], 2)
        arrived[name] = arrived[name] or string.byte(names[i]) == 43
        names[i] = name
      end
    end
    load_all(names)
    for i = 1, #names do
      local group = loaded[names[i]]
      if arrived[group.name] then look_into_line(group) end
      place(group)
    end
    return #names == MOST_GROUPS
  end

  -- After the settings of all groups have changed.
  local function look_again()
    local from = set.relook
    if not from then return false end
    for _ = 1, MOST_GROUPS do
      local name = L.next_name(from ~= '-' and string.sub(from, 2) or nil)
      if not name then
        redis.call('HDEL', K.limits, 'relook')
        return false
      end
      place(L.group(name))
      from = '=' .. name
    end
    redis.call('HSET', K.limits, 'relook', from)
    return true
  end

  -- Jobs that waited before the queue was grouped: the pages up to `backlog` are in lines. @return whether there are more
  function L.move_backlog()
    local from = set.backlog
    if not from then return false end
    local lines, groups, count, bytes = {}, {}, 0, 0
    while count < 1000 and bytes < 4194304 do
      local page = redis.call('ZRANGEBYSCORE', K.waiting, '(' .. from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
      if not page[1] then break end
      for _, entry in ipairs(entries_of(redis.call('HGET', K.pages, page[1]))) do
        local id = string.sub(entry, 2)
        local record = redis.call('HGET', K.jobs, id)
        local list = facts(record)
        local name = list[5] or ''
        local group, own = L.group(name), line_entry(name, list[3], list[1], id, list[9])
        -- One that began to wait since then may be in the hand already.
        if not string.find(group.hand, string.sub(own, #name + 2), group.at, true) then
          lines[#lines + 1], lines[#lines + 2] = '0', own
          groups[#groups + 1] = '+' .. name
        end
        count, bytes = count + 1, bytes + #record
      end
      from = page[2]
    end
    call('ZADD', K.lines, lines)
    call('SADD', K.touched, groups)
    set.backlog = redis.call('ZCOUNT', K.waiting, '(' .. from, '+inf') > 0 and from or nil
    if set.backlog then redis.call('HSET', K.limits, 'backlog', from) else redis.call('HDEL', K.limits, 'backlog') end
    return set.backlog
  end

  -- Makes the queue a grouped one, if it is none.
  function L.make_grouped()
    if grouped then return end
    grouped = true
    redis.call('HSET', K.queue, 'limits', 'groups')
    for _, id in ipairs(redis.call('ZRANGE', K.running, 0, -1)) do
      local group = L.group(facts(redis.call('HGET', K.jobs, id))[5] or '')
      group.runs, group.counted, group.changed = group.runs + 1, true, true
      redis.call('HSET', K.states, id, redis.call('HGET', K.states, id) .. cmsgpack.pack(group.name))
      redis.call('SADD', K.touched, '-' .. group.name)
    end
    set.backlog = '-inf'
    L.move_backlog()
  end

  function L.pause(name, until_time)
    if grouped and name then
      local group = L.group(name)
      group.paused_until = math.max(group.paused_until, until_time)
      group.changed = true
    else
      paused_until = math.max(paused_until, until_time)
      L.changed = true
    end
  end

  function L.give_back(name, started, cost)
    full = full_without(rate, full, started, cost)
    L.changed = true
    if not grouped then return end
    local group = L.group(name or '')
    group.full = full_without(group.rate, group.full, started, cost)
    group.changed = true
  end

  -- What `head_of` is for a queue without limits. `retry_after()`: ms until another claim may bring more, -1: not known.
  function L.head(min_priority)
    local wait, short = L.startable(1), false
    local function retry_after()
      if wait ~= 0 then return wait or -1 end
      if not grouped then return -1 end
      if short then return 0 end
      local held = redis.call('ZRANGE', K.held, 0, 0, 'WITHSCORES')[2]
      return held and math.max(0, held - NOW) or -1
    end

    local plain_read, plain_take, plain_unread = head_of(K, min_priority)
    local function read_limited(count)
      if wait ~= 0 then return {} end
      if not rate then
        local ids = plain_read(running and math.min(count, math.max(0, running - runs)) or count)
        runs = runs + #ids
        return ids
      end
      local ids = {}
      while #ids < count do
        local id = plain_read(1)[1]
        if not id then break end
        local cost = facts(redis.call('HGET', K.jobs, id))[9] or 1
        wait = L.startable(cost)
        if wait ~= 0 then
          plain_unread()
          break
        end
        count_start(cost)
        ids[#ids + 1] = id
      end
      return ids
    end
    if not grouped then return read_limited, function() plain_take() L.save() end, retry_after end

    if wait == 0 then
      short = L.move_backlog() and true
      short = look_at(redis.call('SPOP', K.touched, MOST_GROUPS), true) or short
      short = look_at(redis.call('ZRANGEBYSCORE', K.held, '-inf', text(NOW), 'LIMIT', 0, MOST_GROUPS)) or short
      short = look_again() or short
      move_tickets()
    end

    local function before(a, b)
      if a.ticket ~= b.ticket then return a.ticket > b.ticket end
      local its, other = a.virtual[a.ticket + 1], b.virtual[b.ticket + 1]
      return its < other or its == other and a.place < b.place
    end

    -- Groups in the order of their tickets: those that were read from `tickets`, and a heap of those that got another ticket in this call.
    local read, at, again, ended = {}, 1, {}, false

    local function push_again(group)
      local i = #again + 1
      while i > 1 do
        local parent = math.floor(i / 2)
        if not before(group, again[parent]) then break end
        again[i], i = again[parent], parent
      end
      again[i] = group
    end

    local function pop_again()
      local last = table.remove(again)
      local count, i = #again, 1
      if count == 0 then return end
      while i * 2 <= count do
        local child = i * 2
        if child < count and before(again[child + 1], again[child]) then child = child + 1 end
        if not before(again[child], last) then break end
        again[i], i = again[child], child
      end
      again[i] = last
    end

    -- @return the group whose turn it is, or nil; whether it is from the heap
    local function next_group(count)
      if at > #read and not ended then
        local entries = redis.call('ZRANGE', K.tickets, used, used + count - 1)
        ended = #entries < count
        for i = 1, #entries do entries[i] = string.sub(entries[i], 16) end
        load_all(entries)
        for i = 1, #entries do entries[i] = loaded[entries[i]] end
        read, at = entries, 1
      end
      local group, other = read[at], again[1]
      if other and (not group or before(other, group)) then return other, true end
      return group, false
    end

    local started, late = {}, 0

    local function start(group, first)
      local priority_at, cost = 10 - first[1], first[4]
      virtual[priority_at] = math.max(virtual[priority_at], group.virtual[priority_at])
      group.virtual[priority_at] = group.virtual[priority_at] + cost / group.weight
      group.full = full_after(group.rate, group.full, cost)
      group.runs = group.runs + 1
      group.counted, group.changed = true, true
      group.at, group.first = group.at + LINE_ENTRY, nil
      count_start(cost)
      started[#started + 1] = first
    end

    local function read_lines(count)
      local ids, names = {}, {}
      while wait == 0 and #ids < count do
        local group, is_again = next_group(count - #ids)
        if not group or group.ticket < min_priority then break end
        local first = first_of(group)
        local ready = first and 9 - first[1] == group.ticket and L.group_startable(group, first) == 0
        if ready then wait = L.startable(first[4]) end
        if wait ~= 0 then break end
        if is_again then pop_again() else
          group.listed, at, used = false, at + 1, used + 1
        end
        if ready then
          ids[#ids + 1], names[#names + 1] = first[3], group.name
          start(group, first)
        else
          -- A limit was lowered, or something happened to it, and claims have not come to it yet.
          late = late + 1
        end
        place(group)
        if group.ticket >= 0 then push_again(group) end
        if late > MOST_GROUPS then
          short = true
          break
        end
      end
      return ids, names
    end

    local function take_lines()
      leave_pages(K, started)
      L.save()
    end
    return read_lines, take_lines, retry_after
  end

  -- Forgets groups that have no jobs and no limits of their own. @return how many it has looked at, `limit` at most
  function L.forget_groups(limit)
    local names = {}
    if limit > 0 then names = redis.call('ZRANGEBYSCORE', K.unused, '-inf', text(NOW), 'LIMIT', 0, limit) end
    if #names == 0 then return 0 end
    local marks, forgotten, later = {}, {}, {}
    for i = 1, #names do marks[2 * i - 1], marks[2 * i] = '-' .. names[i], '+' .. names[i] end
    local touched = redis.call('SMISMEMBER', K.touched, unpack(marks))
    load_all(names)
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
  return L
end
