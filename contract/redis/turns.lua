-- Whose turn it is: what a claim of a queue with limits reads and takes, by contract/operations.md, "Limits and turns".
-- Needs the keys: queue, jobs, states, running, pages, waiting, limits, lines, slots, groups, names, touched, tickets, held, unused, @ends.

-- What `head_of` is for a queue without limits. `retry_after()`: ms until another claim may bring more, -1: not known.
local function turns_of(K, limits, grouped, min_priority, per_group)
  local SET_BACK = 1000 -- ms: a claim that is this much before the last one shows that the clock was set back
  local MOST_GROUPS = 1000 -- that one call looks at, beside those of which it starts jobs
  local wait, short = limits.startable(1), false
  local function retry_after()
    if wait ~= 0 then return wait or -1 end
    if not grouped then return -1 end
    if short then return 0 end
    local held = redis.call('ZRANGE', K.held, 0, 0, 'WITHSCORES')[2]
    return held and math.max(0, held - NOW) or -1
  end

  -- Without groups.
  if not grouped then
    local plain_read, plain_take, plain_unread = head_of(K, min_priority)
    local function read(count)
      if wait ~= 0 then return {} end
      if not limits.settings[2] then
        local ids = plain_read(math.min(count, limits.free()))
        limits.start(#ids)
        return ids
      end
      local ids = {}
      while #ids < count do
        local id = plain_read(1)[1]
        if not id then break end
        local cost = facts(redis.call('HGET', K.jobs, id))[9] or 1
        wait = limits.startable(cost)
        if wait ~= 0 then
          plain_unread()
          break
        end
        limits.start(1, cost)
        ids[#ids + 1] = id
      end
      return ids
    end
    local function take()
      plain_take()
      limits.save()
    end
    return read, take, retry_after
  end

  local place, load_all, next_job, start_job, bounded = limits.place, limits.load_all, limits.next_job, limits.start_job, limits.bounded

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
    local groups = load_all(names, {})
    for i = 1, #groups do
      local group = groups[i]
      if arrived[group.name] then
        arrived[group.name] = nil
        limits.look_into_line(group)
      end
      place(group)
    end
    return #names == MOST_GROUPS
  end

  -- After the settings of all groups have changed.
  local function look_again()
    local from = limits.hash.relook
    if not from then return false end
    for _ = 1, MOST_GROUPS do
      local name = limits.next_name(from ~= '-' and string.sub(from, 2) or nil)
      if not name then
        redis.call('HDEL', K.limits, 'relook')
        return false
      end
      place(limits.group(name))
      from = '=' .. name
    end
    redis.call('HSET', K.limits, 'relook', from)
    return true
  end

  if wait == 0 then
    if NOW < (tonumber(limits.hash.claimed) or 0) - SET_BACK then limits.hash.relook = '-' end
    redis.call('HSET', K.limits, 'claimed', NOW)
    short = move_backlog(K, limits)
    short = look_at(redis.call('SPOP', K.touched, MOST_GROUPS), true) or short
    short = look_at(redis.call('ZRANGEBYSCORE', K.held, '-inf', text(NOW), 'LIMIT', 0, MOST_GROUPS)) or short
    short = look_again() or short
    limits.move_tickets()
  end

  local function before(a, b)
    local at = a.ticket
    if at ~= b.ticket then return at > b.ticket end
    local its, other = a.virtual[at + 1], b.virtual[at + 1]
    return its < other or its == other and a.place < b.place
  end

  -- Groups in the order of their tickets: those that were read from `tickets`, and a heap of those that got another ticket in this call.
  -- `used`: how many tickets, from the first on, had their turn.
  local read, at, again, used, ended = {}, 1, {}, 0, false

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
      read, at = load_all(entries, entries), 1
    end
    local group, other = read[at], again[1]
    if other and (not group or before(other, group)) then return other, true end
    return group, false
  end

  local started, late = {}, 0
  -- The group whose turn goes on, and for how many jobs.
  local turn, more = nil, 0

  local function read_lines(count)
    local ids, names, taken = {}, {}, 0
    while wait == 0 and taken < count do
      local group, is_again = turn, false
      if not turn then group, is_again = next_group(count - taken) end
      if not group or group.ticket < min_priority then break end
      local behind, its_place, id, cost = next_job(group)
      if id and bounded then
        wait = limits.startable(cost)
        if wait ~= 0 then break end
      end
      if is_again then pop_again() elseif not turn then
        limits.use_ticket(group)
        at, used = at + 1, used + 1
      end
      if id then
        taken = taken + 1
        ids[taken], names[taken] = id, group.name
        local n = #started
        started[n + 1], started[n + 2], started[n + 3] = behind, its_place, id
        start_job(group, 10 - behind, cost, turn)
        more = (turn and more or per_group) - 1
        if bounded then limits.start(1, cost) end
      else
        -- A limit was lowered, or something happened to it, and claims have not come to it yet.
        late = late + 1
      end
      place(group)
      turn = id and more > 0 and group.ticket == 9 - behind and group or nil
      if not turn and group.ticket >= 0 then push_again(group) end
      if late > MOST_GROUPS then
        short = true
        break
      end
    end
    return ids, names
  end

  local function take_lines()
    if used > 0 then redis.call('ZREMRANGEBYRANK', K.tickets, 0, used - 1) end
    limits.changed = limits.changed or #started > 0
    leave_pages(K, started)
    limits.save()
  end
  return read_lines, take_lines, retry_after
end
