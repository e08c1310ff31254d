-- The waiting jobs of a partition, by priority and place: `pages` and `waiting`, whose layout is told in common.lua.
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

-- Jobs that begin to wait in this call. Use: `enter` each, then `entered` once.
local entering, entering_count = {}, 0

local last_page, last_priority, last_number

local function enter(priority, place, id)
  local number = math.floor(place / PAGE)
  if number ~= last_number or priority ~= last_priority then
    local name, score = page_at(priority, place)
    last_page = entering[name]
    if not last_page then
      last_page = { score = score, last = -1 }
      entering[name] = last_page
    end
    last_priority, last_number = priority, number
  end
  local at = place % PAGE
  if at < last_page.last then last_page.unsorted = true end
  last_page.last = at
  last_page[#last_page + 1] = string.char(at) .. id
  entering_count = entering_count + 1
end

local function by_place(a, b) return string.byte(a) < string.byte(b) end

local function entered(K)
  if entering_count == 0 then return end
  local pages, scores = {}, {}
  for name, added in pairs(entering) do
    local page = redis.call('HGET', K.pages, name) or ''
    local last = page ~= '' and string.byte(page, -ENTRY) or -1
    if added.unsorted then table.sort(added, by_place) end
    if string.byte(added[1]) <= last then
      local entries = entries_of(page)
      for i = 1, #added do entries[#entries + 1] = added[i] end
      table.sort(entries, by_place)
      page, added = '', entries
    end
    pages[#pages + 1] = name
    pages[#pages + 1] = page .. table.concat(added)
    scores[#scores + 1] = text(entering[name].score)
    scores[#scores + 1] = name
  end
  call('HSET', K.pages, pages)
  call('ZADD', K.waiting, scores)
  redis.call('HINCRBY', K.queue, 'waiting', entering_count)
end

local function remove_page(K, name)
  redis.call('HDEL', K.pages, name)
  redis.call('ZREM', K.waiting, name)
end

-- One job waits no more.
local function leave(K, priority, place, id)
  local name = page_at(priority, place)
  local page = redis.call('HGET', K.pages, name)
  local own = string.char(place % PAGE) .. id
  for at = 1, #page, ENTRY do
    if string.sub(page, at, at + ENTRY - 1) == own then
      page = string.sub(page, 1, at - 1) .. string.sub(page, at + ENTRY)
      break
    end
  end
  if page == '' then remove_page(K, name) else redis.call('HSET', K.pages, name, page) end
  redis.call('HINCRBY', K.queue, 'waiting', -1)
end

-- Reads ids in the order of claiming, and takes those that were read. `read(n)`: up to n further ids. `take()`: what was read waits no more.
local function head_of(K)
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
  return read, take
end
