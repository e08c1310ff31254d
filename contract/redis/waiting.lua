-- The waiting jobs of a queue, by priority and place: `pages` and `waiting`, whose layout is in common.lua.
-- Jobs enter and leave at any place. A page costs what its jobs do, so every step here is bounded by the pages that it touches.

local PAGE = 90 -- places in a page
local ENTRY = 17 -- bytes of a job in it

-- @return the page's name, and its score in `waiting`
local function page_at(priority, place)
  local number = math.floor(place / PAGE)
  return priority .. ':' .. text(number), (9 - priority) * SPAN + number
end

-- In the order of claiming: pages of this priority have scores from the first up to below the second.
local function scores_of(priority)
  return text((9 - priority) * SPAN), '(' .. text((10 - priority) * SPAN)
end

-- @return a list of the page's entries
local function entries_of(page)
  local entries = {}
  for at = 1, #page, ENTRY do entries[#entries + 1] = string.sub(page, at, at + ENTRY - 1) end
  return entries
end

-- A job in its line, behind the group and a NUL: 9 minus the priority, the place, the id, the cost.
local IN_LINE, LINE_ENTRY = '>BI6c16I4', 27
local function line_entry(group, priority, place, id, cost)
  return struct.pack('>c0BBI6c16I4', group or '', 0, 9 - priority, place, id, cost or 1)
end

-- Jobs of the queue that begin to wait in this call: `enter` each, then `entered` once.
local function enter(priority, place, id, group, cost)
  local E = Q.entering
  if not E then
    E = { pages = {}, count = 0, lines = {}, groups = {} }
    Q.entering = E
  end
  if GROUPED then
    E.lines[#E.lines + 1] = '0'
    E.lines[#E.lines + 1] = line_entry(group, priority, place, id, cost)
    E.groups[#E.groups + 1] = group or ''
  end
  local at = place % PAGE
  local number = (place - at) / PAGE
  local page = E.page
  if number ~= E.number or priority ~= E.priority then
    local name, score = page_at(priority, place)
    page = E.pages[name]
    if not page then
      page = { score = score, last = -1, count = 0 }
      E.pages[name] = page
    end
    E.page, E.priority, E.number = page, priority, number
  end
  if at < page.last then page.unsorted = true end
  page.last = at
  page.count = page.count + 1
  page[page.count] = string.char(at) .. id
  E.count = E.count + 1
end

local function by_place(a, b) return string.byte(a) < string.byte(b) end

-- @return whether any did
local function entered()
  local E = Q.entering
  if not E then return false end
  Q.entering = nil
  local pages, scores = {}, {}
  for name, added in pairs(E.pages) do
    scores[#scores + 1], scores[#scores + 2] = text(added.score), name
    local page = redis.call('HGET', K.pages, name) or ''
    local last = page ~= '' and string.byte(page, -ENTRY) or -1
    if added.unsorted then table.sort(added, by_place) end
    if string.byte(added[1]) <= last then
      local entries = entries_of(page)
      for i = 1, #added do entries[#entries + 1] = added[i] end
      table.sort(entries, by_place)
      page, added = '', entries
    end
    pages[#pages + 1], pages[#pages + 2] = name, page .. table.concat(added)
  end
  call('HSET', K.pages, pages)
  call('ZADD', K.waiting, scores)
  if GROUPED then
    call('ZADD', K.lines, E.lines)
    call('SADD', K.touched, E.groups)
  end
  redis.call('HINCRBY', K.queue, 'waiting', E.count)
  return true
end

-- Jobs wait no more: of each, 9 minus the priority, place, id. Each page is cut once: what is adjacent in it goes as one piece.
local function leave_pages(jobs)
  if #jobs == 0 then return end
  local names, own_jobs, by_number = {}, {}, {}
  for i = 1, #jobs, 3 do
    local place = jobs[i + 1]
    local at = place % PAGE
    local number = jobs[i] * SPAN + (place - at) / PAGE
    local own = by_number[number]
    if not own then
      own = {}
      by_number[number] = own
      names[#names + 1], own_jobs[#own_jobs + 1] = page_at(9 - jobs[i], place), own
    end
    own[#own + 1] = string.char(at) .. jobs[i + 2]
  end
  local pages, kept, emptied = hmget(K.pages, names), {}, {}
  for i = 1, #names do
    local page, starts, from, pieces = pages[i], {}, 1, {}
    for j = 1, #own_jobs[i] do
      local entry = own_jobs[i][j]
      local at = string.find(page, entry, 1, true)
      while at % ENTRY ~= 1 do at = string.find(page, entry, at + 1, true) end
      starts[j] = at
    end
    table.sort(starts)
    for j = 1, #starts do
      if starts[j] > from then pieces[#pieces + 1] = string.sub(page, from, starts[j] - 1) end
      from = starts[j] + ENTRY
    end
    pieces[#pieces + 1] = string.sub(page, from)
    page = table.concat(pieces)
    if page == '' then emptied[#emptied + 1] = names[i] else kept[#kept + 1], kept[#kept + 2] = names[i], page end
  end
  call('HDEL', K.pages, emptied)
  call('ZREM', K.waiting, emptied)
  call('HSET', K.pages, kept)
  redis.call('HINCRBY', K.queue, 'waiting', -#jobs / 3)
end

-- One job waits no more.
local function leave(priority, place, id, group, cost)
  leave_pages({ 9 - priority, place, id })
  if GROUPED then
    local name = group or ''
    redis.call('ZREM', K.lines, line_entry(group, priority, place, id, cost))
    -- Of a group that no claim has come to yet, and that has no job any more, nothing stays behind: there may be no worker to clear it
    -- away.
    local gone = #redis.call('ZRANGEBYLEX', K.lines, '[' .. name .. '\0', '(' .. name .. '\1', 'LIMIT', 0, 1) == 0
      and redis.call('HEXISTS', K.groups, name) == 0 and redis.call('HEXISTS', K.slots, name) == 0
    redis.call(gone and 'SREM' or 'SADD', K.touched, name)
  end
end

-- @return up to so many ids in the order of claiming, from the page of this rank on. passes(priority, number, entry): whether one counts;
-- nil: all
local function first_waiting(rank, limit, passes)
  local ids = {}
  while #ids < limit do
    local name = redis.call('ZRANGE', K.waiting, rank, rank)[1]
    if not name then break end
    rank = rank + 1
    local priority, number = string.match(name, '(%d+):(%d+)')
    priority, number = tonumber(priority), tonumber(number)
    for _, entry in ipairs(entries_of(redis.call('HGET', K.pages, name))) do
      if #ids < limit and (not passes or passes(priority, number, entry)) then ids[#ids + 1] = string.sub(entry, 2) end
    end
  end
  return ids
end

-- Reads ids in the order of claiming, and takes those that were read. `read(n)`: up to n further ids of at least that priority. `unread()`:
-- not the last one after all. `take()`: what was read waits no more.
local function head_of(min_priority)
  local names, next_name, page, at, taken, emptied = {}, 1, '', 1, 0, {}
  local seen = 0
  local function read(count)
    local ids = {}
    while #ids < count do
      if at > #page then
        if names[next_name - 1] then emptied[#emptied + 1] = names[next_name - 1] end
        if not names[next_name] then
          names, next_name = redis.call('ZRANGE', K.waiting, seen, seen + 7), 1
          seen = seen + #names
          if #names == 0 then
            page, at = '', 1
            break
          end
        end
        if tonumber(string.sub(names[next_name], 1, 1)) < min_priority then break end
        page, at = redis.call('HGET', K.pages, names[next_name]), 1
        next_name = next_name + 1
      else
        ids[#ids + 1] = string.sub(page, at + 1, at + ENTRY - 1)
        at = at + ENTRY
      end
    end
    taken = taken + #ids
    return ids
  end
  local function unread()
    at, taken = at - ENTRY, taken - 1
  end
  local function take()
    if taken == 0 then return end
    local current = names[next_name - 1]
    if current and at > #page then emptied[#emptied + 1] = current
    elseif current then redis.call('HSET', K.pages, current, string.sub(page, at)) end
    if #emptied > 0 then
      call('HDEL', K.pages, emptied)
      call('ZREM', K.waiting, emptied)
    end
    redis.call('HINCRBY', K.queue, 'waiting', -taken)
  end
  return read, take, unread
end
