-- What push-full and restore share: jobs get links to their parents. Needs settle.lua. Use: `link_job` each, `flush_links`, then
-- `cancel_doomed` once all are stored.

local FINAL = { done = DONE, dead = DEAD, cancelled = CANCELLED }
-- What is to be written: members of `links`, values of `waits`; and the jobs to be cancelled at once: id → [parent, how it ended].
local members, values, doomed = {}, {}, {}

-- @return `live`, or how the job ended; nil: the pond does not know it
local function state_in_pond(id)
  local packed = redis.call('HGET', K.states, id)
  if packed then return FINAL[cmsgpack.unpack(packed)[1]] or 'live' end
  return redis.call('HEXISTS', K.jobs, id) == 1 and 'live' or nil
end

local function no_waits(runs) return { open = 0, parents = {}, is_open = {}, seen = {}, runs = runs } end

-- Two ids of a call may stand for one job.
local function add_parent(waits, parent, state)
  if waits.seen[parent] then return end
  waits.seen[parent] = true
  local n = #waits.parents + 1
  waits.parents[n], waits.is_open[n] = parent, state == 'live'
  if state == 'live' then waits.open = waits.open + 1
  elseif state ~= DONE and not waits.runs and not waits.doomed then waits.doomed = { parent, state } end
end

local function add_link(letter, parent, child)
  local m = #members
  members[m + 1], members[m + 2], members[m + 3], members[m + 4] = '0', letter .. parent .. child, '0', 'p' .. child .. parent
end

-- own: the parents that this call has stored.
local function link_job(id, waits, own)
  settle_all_of(id)
  if waits.doomed then
    doomed[id] = waits.doomed
    doomed[#doomed + 1] = id
  end
  for n, parent in ipairs(waits.parents) do
    if waits.is_open[n] and not own[parent] then settle_all_of(parent) end
    add_link(waits.is_open[n] and not waits.doomed and 'o' or 'c', parent, id)
    values[parent] = values[parent] or 0
  end
  values[id] = (waits.doomed and 0 or waits.open * 2) + (waits.runs and 1 or 0)
end

local function flush_links()
  call('ZADD', K.links, members)
  local names, written = {}, {}
  for id in pairs(values) do names[#names + 1] = id end
  local kept = hmget(K.waits, names)
  for n, id in ipairs(names) do
    if values[id] > 0 or not kept[n] then written[#written + 1], written[#written + 2] = id, values[id] end
  end
  call('HSET', K.waits, written)
  if #names > 0 then any_waits = true end
  members, values = {}, {}
end

-- The job is part of the work of another one: the children of that one wait for it too.
local function adopt(id, part_of)
  for _, child in ipairs(linked('o', part_of, 1000000)) do
    local state = child ~= id and state_of(child)
    if state and state[1] == 'blocked' then
      add_link('o', id, child)
      redis.call('HINCRBY', K.waits, child, 2)
    end
  end
end

local function cancel_doomed()
  for _, id in ipairs(doomed) do cancel_child(id, state_of(id), doomed[id][1], doomed[id][2]) end
end
