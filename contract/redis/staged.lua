-- What stage and decided share: the jobs of a graph in this partition, all of which wait until it is decided. The layout of `staged` is
-- told
-- in common.lua. It needs the keys of parents.lua, and staged.

local function staged_value(mark, home, ids) return struct.pack('>c1Bc0', mark, #home, home) .. ids end

-- @return its mark, its home, and where the ids begin
local function staged_head(value)
  local length = string.byte(value, 2)
  return string.sub(value, 1, 1), string.sub(value, 3, 2 + length), 3 + length
end

-- Removes a job of the graph, unless somebody has cancelled it meanwhile.
local function unstage(K, graph, id)
  local value, state = redis.call('HGET', K.parents, id), state_of(K, id)
  if not state then return forget_children(K, id) end
  if not value or string.sub(value, 2, 17) ~= graph then return end
  if state[1] == 'blocked' or string.sub(value, 1, 1) == 'f' then remove_one(K, id, state, function() return facts_of(K, id) end, DONE) end
end

-- Starts or removes up to so many jobs of the graph, all at the end. Of those that ended before it was decided, the children are told now:
-- some of them may have come since. @return how many are left
local function decide_staged(K, graph, is_committed, limit, kept)
  local value = redis.call('HGET', K.staged, graph)
  if not value then return 0 end
  may_write(K)
  local mark, home, from = staged_head(value)
  if is_committed and mark == 'h' then
    redis.call('ZREM', K.graphs, graph)
    count_total(K, 'pushed', (#value - from + 1) / 16)
  end
  local ids = {}
  for at = from, math.min(#value, from + limit * 16 - 1), 16 do ids[#ids + 1] = string.sub(value, at, at + 15) end
  local values, count = is_committed and hmget(K.parents, ids), 0
  for i = 1, #ids do
    if read_bytes >= LARGE then break end
    count = i
    if not is_committed then
      unstage(K, graph, ids[i])
    elseif not values[i] then
      -- One that has started and ended since then is told of already.
      local is_gone = redis.call('HEXISTS', K.jobs, ids[i]) == 0 and not redis.call('ZSCORE', K.ended, ids[i])
      if is_gone then end_parent(K, ids[i], REMOVED) end
    elseif string.sub(values[i], 2, 17) == graph then
      if string.sub(values[i], 1, 1) == 'f' then
        redis.call('HDEL', K.parents, ids[i])
        -- The job that it followed has ended meanwhile.
        if redis.call('HGET', K.keys, facts_of(K, ids[i])[7]) == ids[i] then set_off(K, ids[i]) end
      elseif is_over(values[i]) then
        local name = (state_of(K, ids[i]) or NEW_STATE)[1]
        if name == 'blocked' then go_on(K, ids[i], values[i], kept)
        elseif name == 'cancelled' then end_parent(K, ids[i], CANCELLED) end
      end
    end
  end
  local rest = string.sub(value, from + count * 16)
  if rest == '' then
    redis.call('HDEL', K.staged, graph)
    redis.call('ZREM', K.graphs, graph)
  else
    redis.call('HSET', K.staged, graph, staged_value(is_committed and 'r' or mark, home, rest))
    note_end(K, NOW + 1000)
  end
  return #rest / 16
end
