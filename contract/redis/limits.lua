-- What scripts share that know a queue's limits and groups: contract/operations.md, "Limits and turns". All in one function, so that a queue without
-- limits pays nothing for it. Use: `local limits = limits_of(K)`; what it changes of groups and of the queue is written by `limits.save()`.
-- Needs the keys: limits, running, and of a grouped queue lines, slots, groups, names, touched, tickets, held.

local function limits_of(K, grouped)
  local L = { limited = false }
  local MOST_GROUPS = 1000 -- that one call looks at, beside those of which it starts jobs
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
    local wait = math.max(0, until_time - NOW)
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

  local function ticket_of(group)
    local time = struct.pack('>d', group.virtual[group.ticket + 1])
    return (9 - group.ticket) .. time .. string.format('%015.0f', group.place) .. group.name
  end

  local function limit_with(group, own)
    group.own = own
    group.running = own and own[1] or (group.name ~= '' and group_running)
    group.rate = own and own[2] or (group.name ~= '' and group_rate)
    group.weight = own and own[3] or 1
  end
  L.limit_with = limit_with

  local function load(name, packed, slots)
    local list = packed and cmsgpack.unpack(packed) or { 0, 0, false, 0, zeros(), false }
    local group = { name = name, known = packed, full = list[1], paused_until = list[2], ticket = list[3], place = list[4], virtual = list[5] }
    group.runs = tonumber(slots) or 0
    limit_with(group, list[6])
    if group.ticket and group.ticket >= 0 then group.entry = ticket_of(group) end
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

  function L.save()
    if L.changed then
      redis.call('HSET', K.limits, 'full', text(full), 'pausedUntil', text(paused_until), 'virtual', cmsgpack.pack(virtual))
    end
    local states, names, slots = {}, {}, {}
    for name, group in pairs(loaded) do
      if group.changed then
        states[#states + 1] = name
        states[#states + 1] = cmsgpack.pack({ group.full, group.paused_until, group.ticket, group.place, group.virtual, group.own })
        if not group.known then
          names[#names + 1] = '0'
          names[#names + 1] = name
        end
      end
      if group.started then
        slots[#slots + 1] = name
        slots[#slots + 1] = text(group.runs)
      end
    end
    call('HSET', K.groups, states)
    call('ZADD', K.names, names)
    call('HSET', K.slots, slots)
  end

  -- The first waiting job of a group: { entry, priority, place, id, cost }, or nil
  function L.first(name)
    local entry = redis.call('ZRANGEBYLEX', K.lines, '[' .. name .. '\0', '(' .. name .. '\1', 'LIMIT', 0, 1)[1]
    if not entry then return nil end
    local at = #name + 2
    return {
      entry, 9 - tonumber(string.sub(entry, at, at)), tonumber(string.sub(entry, at + 1, at + 15)),
      string.sub(entry, at + 16, at + 31), tonumber(string.sub(entry, at + 32)) or 1,
    }
  end

  -- @return ms until the group may start its first job; false: as many run as may, or none waits
  function L.group_startable(group, first)
    if not first or group.running and group.runs >= group.running then return false end
    return wait_for(group.rate, group.full, group.paused_until, first[5])
  end

  -- The next group that has waiting jobs, after that name; nil: the first.
  function L.next_waiting(name)
    local entry = redis.call('ZRANGEBYLEX', K.lines, name and '[' .. name .. '\1' or '-', '+', 'LIMIT', 0, 1)[1]
    return entry and string.sub(entry, 1, string.find(entry, '\0', 1, true) - 1)
  end

  -- Gives a group its ticket, or has it held, or neither.
  local function place(group)
    local first = L.first(group.name)
    group.first = first
    local wait = L.group_startable(group, first)
    local had, had_place, entry = group.ticket, group.place, nil
    if not wait then group.ticket = false
    elseif wait > 0 then
      group.ticket = -1
      redis.call('ZADD', K.held, text(NOW + wait), group.name)
    else
      local at = first[2] + 1
      -- A ticket that is new at its priority begins at the queue's virtual time: to wait or to idle earns no credit.
      if had ~= first[2] then group.virtual[at] = math.max(group.virtual[at], virtual[at]) end
      group.ticket, group.place = first[2], first[3]
      entry = ticket_of(group)
    end
    if had == -1 and group.ticket ~= -1 then redis.call('ZREM', K.held, group.name) end
    if group.entry and group.entry ~= entry then redis.call('ZREM', K.tickets, group.entry) end
    if entry and group.entry ~= entry then redis.call('ZADD', K.tickets, 0, entry) end
    if group.entry ~= entry or had ~= group.ticket or had_place ~= group.place then group.changed = true end
    group.entry = entry
  end

  local function look_at(names)
    load_all(names)
    for i = 1, #names do place(L.group(names[i])) end
    return #names == MOST_GROUPS
  end

  -- After the settings of all groups have changed.
  local function look_again()
    local from = set.relook
    if not from then return false end
    for _ = 1, MOST_GROUPS do
      local name = L.next_waiting(from ~= '-' and string.sub(from, 2) or nil)
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
    local lines, groups, bytes = {}, {}, 0
    while #groups < 1000 and bytes < 4194304 do
      local page = redis.call('ZRANGEBYSCORE', K.waiting, '(' .. from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
      if not page[1] then break end
      for _, entry in ipairs(entries_of(redis.call('HGET', K.pages, page[1]))) do
        local id = string.sub(entry, 2)
        local record = redis.call('HGET', K.jobs, id)
        local list = facts(record)
        lines[#lines + 1] = '0'
        lines[#lines + 1] = line_entry(list[5], list[3], list[1], id, list[9])
        groups[#groups + 1] = list[5] or ''
        bytes = bytes + #record
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
      group.runs, group.started, group.changed = group.runs + 1, true, true
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
    local wait, short, started = L.startable(1), false, {}
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
      short = look_at(redis.call('SPOP', K.touched, MOST_GROUPS)) or short
      short = look_at(redis.call('ZRANGEBYSCORE', K.held, '-inf', text(NOW), 'LIMIT', 0, MOST_GROUPS)) or short
      short = look_again() or short
    end

    local function start(group, entry, first)
      redis.call('ZREM', K.tickets, entry)
      redis.call('ZREM', K.lines, first[1])
      group.entry = nil
      local at, cost = first[2] + 1, first[5]
      virtual[at] = math.max(virtual[at], group.virtual[at])
      group.virtual[at] = group.virtual[at] + cost / group.weight
      group.full = full_after(group.rate, group.full, cost)
      group.runs = group.runs + 1
      group.started, group.changed = true, true
      count_start(cost)
      started[#started + 1] = first
      place(group)
    end

    local late = 0
    local function read_lines(count)
      local ids = {}
      while wait == 0 and #ids < count do
        local entry = redis.call('ZRANGE', K.tickets, 0, 0)[1]
        if not entry or 9 - tonumber(string.sub(entry, 1, 1)) < min_priority then break end
        local group = L.group(string.sub(entry, 25))
        local first = group.first or L.first(group.name)
        if not first or first[2] ~= group.ticket or L.group_startable(group, first) ~= 0 then
          -- A limit was lowered, or something happened to it, and claims have not come to it yet.
          late = late + 1
          if late > MOST_GROUPS then
            short = true
            break
          end
          place(group)
        else
          wait = L.startable(first[5])
          if wait == 0 then
            start(group, entry, first)
            ids[#ids + 1] = first[4]
          end
        end
      end
      return ids
    end

    local function take_lines()
      for _, first in ipairs(started) do leave_page(K, first[2], first[3], first[4]) end
      if #started > 0 then redis.call('HINCRBY', K.queue, 'waiting', -#started) end
      L.save()
    end
    return read_lines, take_lines, retry_after
  end

  -- Forgets some groups of which nothing is left that matters to a later job.
  function L.forget_groups()
    for _, name in ipairs(redis.call('HRANDFIELD', K.groups, 100)) do
      local group = L.group(name)
      local idle = not group.own and not group.ticket and group.runs == 0 and group.paused_until <= NOW and group.full <= NOW * 1000
      for at = 1, 10 do idle = idle and group.virtual[at] <= virtual[at] end
      if idle and not L.first(name) then
        redis.call('HDEL', K.groups, name)
        redis.call('ZREM', K.names, name)
      end
    end
  end
  return L
end
