-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include run.lua
-- @include links.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- @include parents.lua
-- @include changed.lua
-- @include meet.lua
-- @include staged.lua
-- @include pushes.lua
-- stage: stores jobs of a graph, which wait until it is decided.
-- KEYS: queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors lines slots groups
--      blocked touched awaiting parents children ended graphs staged @due @ends
-- Head: as of `push`, then: home: the part that decides; alone: all jobs and their parents are in this partition, and in
--       this call: decide here and now; whole; counts: of each job, how many parents it has; locals: of each, how many of these, the first
--       ones, are of this partition; runs: of each, whether its onDead is `run`, nil: of none; missing: of each, 1 if
--       the job that it is part of has ended, whose id then stands behind its parents, else 0; nil: of none. A parent that is in no partition
--       counts among those of this one.
-- In:  as of `push`; then the id of the graph, and the ids of all parents, one after the other.
-- Out: as of `push`, and of a job with an unknown parent: `orphan` and that parent, a list. `held` is of jobs of other graphs. Then links.
-- Invariant: without `alone`, nothing is counted as pushed, and nothing starts, before `decided`. Links to the parents of this partition are
--      made here, those to others by `link`.

local K = keys_of(
  'queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors lines slots groups '
    .. 'blocked touched awaiting parents children ended graphs staged @due @ends')
local home, alone, whole, counts, locals, runs, missing = unpack(HEAD, 11, 17)
local graph = ARGV[5]
local UNDECIDED = 60000 -- ms after which a sweep decides
local FINAL = { done = DONE, dead = DEAD, cancelled = CANCELLED }
local ids, from = ids_in(ARGV[3]), {}

local function parent_at(i, j)
  local at = from[i] + j * 16
  return string.sub(ARGV[6], at, at + 15)
end

-- The states of parents of this partition, as they were before this call.
local state_names, names_of = {}, {}
local function look_up(parents)
  for first = 1, #parents, MANY do
    local some = { unpack(parents, first, math.min(first + MANY - 1, #parents)) }
    local found = hmget(K.states, some)
    for i = 1, #some do
      local packed = found[i]
      if packed and not names_of[packed] then names_of[packed] = cmsgpack.unpack(packed)[1] end
      state_names[some[i]] = packed and names_of[packed]
    end
  end
end

local function find_parents()
  local at, found, own = 1, {}, {}
  for i = 1, #ids do
    from[i] = at
    for j = 0, locals[i] - 1 do
      local id = parent_at(i, j)
      if not own[id] then
        own[id] = true
        found[#found + 1] = id
      end
    end
    own[ids[i]] = true
    at = at + (counts[i] + (missing and missing[i] or 0)) * 16
  end
  look_up(found)
end
find_parents()

local function state_now(id)
  if state_names[id] == nil then look_up({ id }) end
  return state_names[id] or redis.call('HEXISTS', K.jobs, id) == 1 and 'waiting'
end

-- Of jobs of this call: those that are stored; the ids that stand for others; those that are refused.
local stored, stand_for, refused = {}, {}, {}
local staged, values, places, children = {}, {}, {}, {}
local PART_BEHIND = link_entry('', PART)
-- Of the job that is looked at: its ids of parents, those with an open link first; how many these are; the first one that ended badly.
local id_bytes, open_count, doom, doomed_by
STAGED = true

-- Reads the parents of a job. @return the one that is unknown
local function read_parents(i)
  local first, count = from[i], counts[i]
  id_bytes, open_count, doom = string.sub(ARGV[6], first, first + count * 16 - 1), count, nil
  local closed, is_changed = nil, false
  for j = 0, count - 1 do
    local given = parent_at(i, j)
    local parent = stand_for[given] or given
    is_changed = is_changed or parent ~= given
    if j < locals[i] and not stored[parent] then
      local state = not refused[parent] and state_now(parent)
      if not state then return given end
      local ended = FINAL[state]
      if ended then
        closed = closed or {}
        closed[j] = true
        if ended ~= DONE and not (runs and runs[i]) and not doom then doom, doomed_by = ended, parent end
      else part_ended(K, parent) end
    end
  end
  if missing and missing[i] > 0 then return parent_at(i, count) end
  if closed or is_changed then
    local open, others = {}, {}
    for j = 0, count - 1 do
      local given = parent_at(i, j)
      local list = (doom or closed and closed[j]) and others or open
      if not doom or (stand_for[given] or given) ~= doomed_by then list[#list + 1] = stand_for[given] or given end
    end
    open_count = #open
    id_bytes = (doom and doomed_by or '') .. table.concat(open) .. table.concat(others)
  end
  return nil
end

local refusals = {}
STAGE = {
  graph = graph,
  refuse = function(i)
    if refusals[i] == nil then
      local parent = read_parents(i)
      refusals[i] = parent and { 'orphan', parent } or false
    end
    return refusals[i]
  end,
  is_doomed = function() return doom ~= nil end,
  meet = function(id, existing)
    if existing ~= id then stand_for[id], refused[id] = existing, not existing end
  end,
  store = function(i, id, place)
    stored[id] = true
    local n = #staged + 1
    staged[n] = id
    local kind = not place and 'f' or doom and tostring(doom) or runs and runs[i] and 'r' or 'c'
    values[#values + 1], values[#values + 2] = id, parents_value(kind, graph, open_count, id_bytes)
    if place then places[#places + 1], places[#places + 2] = text(place), id end
    local link = locals[i] > 0 and id .. PART_BEHIND
    for j = 0, locals[i] - 1 do
      local given = parent_at(i, j)
      local parent = stand_for[given] or given
      children[parent] = children[parent] and children[parent] .. link or link
    end
  end,
  flush = function()
    call('HSET', K.parents, values)
    call('ZADD', K.awaiting, places)
    add_links(K, children)
    values, places, children = {}, {}, {}
  end,
}

local out = push_jobs(K, ids)
if #out == 0 then return out end
if #staged > 0 then
  local before = redis.call('HGET', K.staged, graph) or staged_value('h', home, '')
  redis.call('HSET', K.staged, graph, before .. table.concat(staged))
  redis.call('ZADD', K.graphs, 'NX', text(NOW), graph)
  note_end(K, NOW + UNDECIDED)
end
if not alone then return out end

local is_committed = true
for i = 2, #out do
  local is_list = type(out[i]) == 'table'
  if is_list and out[i][1] == 'held' or whole and (is_list or out[i] == 1) then is_committed = false end
end
local kept, limits = keep(K, false)
decide_staged(K, graph, is_committed, #ids, kept)
if is_committed then gone_on_all(K, kept, limits) else removed_all(K, limits) end
return with_links(K, out)
