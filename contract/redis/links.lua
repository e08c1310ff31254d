-- What scripts share that end jobs for which others wait, or remove them: graphs.md. It needs the keys queue, parents, children, ended and
-- @ends. The layout of `children` is told in common.lua.

local DONE, DEAD, CANCELLED, REMOVED = 0, 1, 2, 3 -- how a parent ended, as in `ended`
local MOST_LINKS = 1000 -- that one answer tells
local FULL = 2000 -- bytes from which on a page gets no more links

-- A link in a page: the child, and its part with its length before it.
local function link_entry(child, part) return child .. string.char(#part) .. part end

local function page_name(parent, number) return parent .. struct.pack('>I3', number) end

-- children: of each parent, its new links, one after the other.
local function add_links(K, children)
  local parents, puts = {}, {}
  for parent in pairs(children) do parents[#parents + 1] = parent end
  for first = 1, #parents, MANY do
    local some = { unpack(parents, first, math.min(first + MANY - 1, #parents)) }
    for i, page in ipairs(hmget(K.children, some)) do
      page = page or '\0\0\0'
      if #page > FULL then
        local number = struct.unpack('>I3', page)
        puts[#puts + 1], puts[#puts + 2] = page_name(some[i], number), string.sub(page, 4)
        page = struct.pack('>I3', number + 1)
      end
      puts[#puts + 1], puts[#puts + 2] = some[i], page .. children[some[i]]
    end
  end
  call('HSET', K.children, puts)
end

-- @return up to so many of a job's links, oldest first, each the child and its part; where the others begin, to be given as `from`, nil:
-- none
local function links_of(K, id, from, limit)
  local last, links, page, at = redis.call('HGET', K.children, id), {}, 0, 1
  if not last then return links, nil end
  local count = struct.unpack('>I3', last)
  if from then
    page, at = string.match(from, '(%d+):(%d+)')
    page, at = tonumber(page), tonumber(at)
  end
  while page <= count do
    local bytes = page < count and redis.call('HGET', K.children, page_name(id, page)) or string.sub(last, 4)
    while at <= #bytes do
      if #links == limit then return links, page .. ':' .. at end
      local behind = at + 17 + string.byte(bytes, at + 16)
      links[#links + 1] = string.sub(bytes, at, at + 15) .. string.sub(bytes, at + 17, behind - 1)
      at = behind
    end
    page, at = page + 1, 1
  end
  return links, nil
end

local function forget_children(K, id)
  local last = redis.call('HGET', K.children, id)
  if not last then return end
  for number = 0, struct.unpack('>I3', last) - 1 do redis.call('HDEL', K.children, page_name(id, number)) end
  redis.call('HDEL', K.children, id)
end

local any_children
local function has_children(K)
  if any_children == nil then any_children = redis.call('EXISTS', K.children) == 1 end
  return any_children
end

-- Ended jobs, or single links, whose children are to be told.
local has_ended = false
local function add_ended(K, member, state)
  redis.call('ZADD', K.ended, redis.call('HINCRBY', K.queue, 'endings', 1) * 4 + state, member)
  has_ended = true
end

-- Jobs whose graph is not decided, so that children may still come to them: they are told when it is.
local undecided_ids = {}

-- A live job has ended. To be called before `forget`.
local function end_parent(K, id, state)
  if undecided_ids[id] or not has_children(K) or redis.call('HEXISTS', K.children, id) == 0 then return end
  redis.call('HDEL', K.queue, 'settled:' .. id)
  add_ended(K, id, state)
end

-- A job lives again whose children have not been told yet how it ended before: those that come now are not among them.
local any_ended
local function part_ended(K, id)
  if any_ended == nil then any_ended = redis.call('EXISTS', K.ended) == 1 end
  local score = any_ended and redis.call('ZSCORE', K.ended, id)
  if not score then return end
  local links = links_of(K, id, redis.call('HGET', K.queue, 'settled:' .. id), math.huge)
  for _, link in ipairs(links) do redis.call('ZADD', K.ended, score, id .. link) end
  redis.call('ZREM', K.ended, id)
  redis.call('HDEL', K.queue, 'settled:' .. id)
end

-- Adds to an answer what `ended` holds, oldest first: per job [member, score, from, link…]. from: where the links begin that are left, or
-- nothing.
local function tell_ended(K, told)
  local count, ended = 0, redis.call('ZRANGE', K.ended, 0, MOST_LINKS - 1, 'WITHSCORES')
  for i = 1, #ended, 2 do
    if count >= MOST_LINKS then break end
    local member, links, from = ended[i], {}, nil
    if #member > 16 then links[1] = string.sub(member, 17)
    else links, from = links_of(K, member, redis.call('HGET', K.queue, 'settled:' .. member), MOST_LINKS - count) end
    count = count + #links
    told[#told + 1] = { member, ended[i + 1], from or '', unpack(links) }
  end
end

-- The answer, behind which stands what the client is to do about links: a list that begins with `links`.
local function with_links(K, out)
  if not has_ended then return out end
  -- If the client is no more, a sweep does it.
  note_end(K, NOW + 1000)
  local told = { 'links' }
  tell_ended(K, told)
  out[#out + 1] = told
  return out
end

-- Jobs go: their links go with them, but for those that are still to be settled.
local function forget_links(K, ids)
  if redis.call('EXISTS', K.parents) == 1 then
    -- Of a graph that is not decided, those that were cancelled go before their children are told.
    for i, value in ipairs(K.graphs and redis.call('EXISTS', K.graphs) == 1 and hmget(K.parents, ids) or {}) do
      if value and redis.call('ZSCORE', K.graphs, string.sub(value, 2, 17)) then undecided_ids[ids[i]] = true end
    end
    call('HDEL', K.parents, ids)
  end
  if not has_children(K) then return end
  for i = 1, #ids do
    if not undecided_ids[ids[i]] and not redis.call('ZSCORE', K.ended, ids[i]) then forget_children(K, ids[i]) end
  end
end
