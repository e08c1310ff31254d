-- What push-full and restore share: jobs get links to their parents. Needs settle.lua. Use: `link_job` each, `flush_links`, then
-- `cancel_doomed` once all are stored.

local FINAL = { done = DONE, dead = DEAD, cancelled = CANCELLED }
-- What is to be written: members of `links`, fields and values of `waits`, parents that were there before. noted: the ids that are among
-- these. doomed: the jobs to be cancelled at once: id → [parent, how it ended].
local members, values, foreign, noted, doomed = {}, {}, {}, {}, {}
-- Numbers as arguments of a command cost more than texts.
local TEXTS = setmetatable({}, { __index = function(texts, number)
  texts[number] = text(number)
  return texts[number]
end })

-- @return `live`, or how the job ended; nil: the pond does not know it
local function state_in_pond(id)
  local packed = redis.call('HGET', K.states, id)
  if packed then return FINAL[cmsgpack.unpack(packed)[1]] or 'live' end
  return redis.call('HEXISTS', K.jobs, id) == 1 and 'live' or nil
end

-- waits: what a job waits for, a list [the ids of its parents, each once, one after the other; whether its onDead is `run`; the id of the
-- job that it is part of, or false]. Notes how many of the links are open, which are closed, and of which parent it must be cancelled.
-- @return the first parent that `state_of` does not know; nil: it knows all
local function judge(waits, state_of)
  local after, runs, open = waits[1], waits[2], 0
  for from = 1, #after, 16 do
    local parent = string.sub(after, from, from + 15)
    local state = state_of(parent)
    if not state then return parent end
    if state == 'live' then open = open + 1
    else
      waits.closed = waits.closed or {}
      waits.closed[parent] = true
      if state ~= DONE and not runs then waits.doomed = waits.doomed or { parent, state } end
    end
  end
  waits.open = open
  return nil
end

-- own: the jobs that this call has stored.
local function link_job(id, waits, own)
  settle_all_of(id)
  local after, closed, is_doomed, m = waits[1], waits.closed, waits.doomed, #members
  if is_doomed then
    doomed[id] = is_doomed
    doomed[#doomed + 1] = id
  end
  for from = 1, #after, 16 do
    local parent = string.sub(after, from, from + 15)
    local is_open = not closed or not closed[parent]
    if not noted[parent] then
      noted[parent] = true
      if own[parent] then values[#values + 1], values[#values + 2] = parent, '0'
      else
        settle_all_of(parent)
        foreign[#foreign + 1] = parent
      end
    end
    members[m + 1], members[m + 2] = '0', (is_open and not is_doomed and 'o' or 'c') .. parent .. id
    members[m + 3], members[m + 4] = '0', 'p' .. id .. parent
    m = m + 4
  end
  noted[id] = true
  values[#values + 1], values[#values + 2] = id, TEXTS[(is_doomed and 0 or waits.open * 2) + (waits[2] and 1 or 0)]
end

-- Writes what has come so far. Parents that were there before keep their values.
local function flush_links()
  call('ZADD', K.links, members)
  for i, value in ipairs(hmget(K.waits, foreign)) do
    if not value then values[#values + 1], values[#values + 2] = foreign[i], '0' end
  end
  call('HSET', K.waits, values)
  if #values > 0 then any_waits = true end
  members, values, foreign = {}, {}, {}
end

-- The job is part of the work of another one: the children of that one wait for it too.
local function adopt(id, part_of)
  for _, child in ipairs(linked('o', part_of, 1000000)) do
    local state = child ~= id and state_of(child)
    if state and state[1] == 'blocked' then
      local m = #members
      members[m + 1], members[m + 2] = '0', 'o' .. id .. child
      members[m + 3], members[m + 4] = '0', 'p' .. child .. id
      redis.call('HINCRBY', K.waits, child, 2)
    end
  end
end

local function cancel_doomed()
  for _, id in ipairs(doomed) do cancel_child(id, state_of(id), doomed[id][1], doomed[id][2]) end
end
