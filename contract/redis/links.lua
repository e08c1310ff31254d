-- What scripts share that end jobs for which others wait, or remove them: graphs.md. It needs the keys queue, parents, children, ended and
-- @ends.

local DONE, DEAD, CANCELLED, REMOVED = 0, 1, 2, 3 -- how a parent ended, as in `ended`
local MOST_LINKS = 1000 -- that one answer tells
local BEHIND = string.rep('\255', 17) -- behind a job's id: after all of its children

local any_children
local function has_children(K)
  if any_children == nil then any_children = redis.call('EXISTS', K.children) == 1 end
  return any_children
end

-- @return up to so many of a job's links, by child, behind this one; nil: from the first
local function links_of(K, id, from, limit)
  return redis.call('ZRANGEBYLEX', K.children, '(' .. (from or id), '(' .. id .. BEHIND, 'LIMIT', 0, limit)
end

-- Ended jobs, or single links, whose children are to be told.
local has_ended = false
local function add_ended(K, member, state)
  redis.call('ZADD', K.ended, redis.call('HINCRBY', K.queue, 'endings', 1) * 4 + state, member)
  has_ended = true
end

-- A live job has ended. To be called before `forget`.
local function end_parent(K, id, state)
  if not has_children(K) or #links_of(K, id, nil, 1) == 0 then return end
  redis.call('HDEL', K.queue, 'settled:' .. id)
  add_ended(K, id, state)
end

-- A job lives again whose children have not been told yet how it ended before: those that come now are not among them.
local function part_ended(K, id)
  local score = redis.call('ZSCORE', K.ended, id)
  if not score then return end
  local from = redis.call('HGET', K.queue, 'settled:' .. id) or nil
  for _, link in ipairs(links_of(K, id, from, -1)) do redis.call('ZADD', K.ended, score, link) end
  redis.call('ZREM', K.ended, id)
  redis.call('HDEL', K.queue, 'settled:' .. id)
end

-- Adds to an answer what `ended` holds, oldest first: per job [member, score, more, link…].
local function tell_ended(K, told)
  local count, ended = 0, redis.call('ZRANGE', K.ended, 0, MOST_LINKS - 1, 'WITHSCORES')
  for i = 1, #ended, 2 do
    if count >= MOST_LINKS then break end
    local member, one = ended[i], { ended[i], ended[i + 1], 0 }
    if #member > 16 then
      one[4] = member
    else
      local most = MOST_LINKS - count
      local links = links_of(K, member, redis.call('HGET', K.queue, 'settled:' .. member) or nil, most + 1)
      if #links > most then one[3] = 1 end
      for j = 1, math.min(#links, most) do one[3 + j] = links[j] end
    end
    count = count + #one - 3
    told[#told + 1] = one
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
  if redis.call('EXISTS', K.parents) == 1 then call('HDEL', K.parents, ids) end
  if not has_children(K) then return end
  for i = 1, #ids do
    if not redis.call('ZSCORE', K.ended, ids[i]) then
      redis.call('ZREMRANGEBYLEX', K.children, '(' .. ids[i], '(' .. ids[i] .. BEHIND)
    end
  end
end
