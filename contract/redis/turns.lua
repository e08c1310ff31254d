-- Whose turn it is: what a claim of a queue with limits reads and takes, by contract/operations.md, "Limits and turns".

-- What `head_of` is for a queue without limits. `retry_after()`: ms until another claim may bring more, -1: not known.
local function turns_of(limits, grouped, min_priority, per_group)
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
    local plain_read, plain_take, plain_unread = head_of(min_priority)
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

  local place, bounded = limits.place, limits.bounded

  -- @return whether there may be more than these
  local function place_all(names)
    for _, group in ipairs(limits.groups(names)) do place(group) end
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
    short = move_backlog(limits)
    short = place_all(redis.call('SPOP', K.touched, MOST_GROUPS)) or short
    short = place_all(redis.call('ZRANGEBYSCORE', K.held, '-inf', text(NOW), 'LIMIT', 0, MOST_GROUPS)) or short
    short = look_again() or short
  end

  local started, lines, late = {}, {}, 0
  -- The group whose turn goes on, and for how many jobs.
  local turn, more = nil, 0
  -- Groups in the order of their tickets, from `at` on: the first ones of `tickets`, and those that have come back among them.
  local read, at = {}, 1

  local function next_group(count)
    if at > #read then
      limits.move()
      read, at = redis.call('ZRANGE', K.tickets, 0, count - 1), 1
      for i = 1, #read do read[i] = string.sub(read[i], 16) end
      read = limits.groups(read)
    end
    return read[at]
  end

  local function before(a, b)
    if a.at ~= b.at then return a.at > b.at end
    local its, other = a.virtual[a.at + 1], b.virtual[b.at + 1]
    return its < other or its == other and a.place < b.place
  end

  -- A group has another ticket. If it is behind those that were read, it is read later.
  local function come_back(group)
    if not read[at] or not before(group, read[#read]) then return end
    local i = at
    while before(read[i], group) do i = i + 1 end
    table.insert(read, i, group)
  end

  local function read_lines(count)
    local ids, names = {}, {}
    while wait == 0 and #ids < count do
      local group = turn or next_group(count - #ids)
      if not group or group.at < min_priority then break end
      local job = limits.first(group)
      -- Unless a limit was lowered, or something happened to it, and claims have not come to it yet.
      local may_start = job and job.priority == group.at and limits.wait_of(group, job.cost) == 0
      if may_start then
        if bounded then
          wait = limits.startable(job.cost)
          if wait ~= 0 then break end
          limits.start(1, job.cost)
        end
        limits.start_first(group, turn)
        ids[#ids + 1], names[#names + 1], lines[#lines + 1] = job.id, group.name, job.entry
        local n = #started
        started[n + 1], started[n + 2], started[n + 3] = 9 - job.priority, job.place, job.id
        more = (turn and more or per_group) - 1
      else
        late = late + 1
      end
      if not turn then at = at + 1 end
      place(group)
      turn = may_start and more > 0 and group.at == job.priority and group or nil
      if not turn and group.at >= 0 then come_back(group) end
      if late > MOST_GROUPS then
        short = true
        break
      end
    end
    return ids, names
  end

  local function take_lines()
    call('ZREM', K.lines, lines)
    limits.changed = limits.changed or #started > 0
    leave_pages(started)
    limits.save()
  end
  return read_lines, take_lines, retry_after
end
