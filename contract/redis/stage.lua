-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include run.lua
-- @include links.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- @include waits.lua
-- @include changed.lua
-- @include meet.lua
-- @include staged.lua
-- @include pushes.lua
-- stage: stores jobs of a graph, which wait until it is decided.
-- KEYS: queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors lines slots groups
--      blocked touched awaiting waits parents children ended graphs staged @due @ends
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
    .. 'blocked touched awaiting waits parents children ended graphs staged @due @ends')
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
    for i, packed in ipairs(hmget(K.states, some)) do
      if packed and not names_of[packed] then names_of[packed] = cmsgpack.unpack(packed)[1] end
      state_names[some[i]] = packed and names_of[packed]
    end
  end
end
local function find_parents()
  local at, found = 1, {}
  for i = 1, #ids do
    from[i] = at
    for j = 0, locals[i] - 1 do found[#found + 1] = parent_at(i, j) end
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
local staged, waits, parents, places, links = {}, {}, {}, {}, {}
local open, all, doom, own
STAGED = true

-- Reads the parents of a job. @return the one that is unknown
local function read_parents(i, id)
  open, all, doom, own = {}, {}, nil, {}
  for j = 0, counts[i] - 1 do
    local given = parent_at(i, j)
    local parent = stand_for[given] or given
    all[#all + 1] = parent
    if j >= locals[i] or stored[parent] then
      open[#open + 1] = parent
    else
      local state = not refused[parent] and state_now(parent)
      if not state then return given end
      if not FINAL[state] then
        part_ended(K, parent)
        open[#open + 1] = parent
      elseif state ~= 'done' and not (runs and runs[i]) then doom = doom or parent .. FINAL[state] end
    end
    if j < locals[i] then
      own[#own + 1] = '0'
      own[#own + 1] = parent .. id .. PART
    end
  end
  return missing and missing[i] > 0 and parent_at(i, counts[i]) or nil
end

local refusals = {}
STAGE = {
  graph = graph,
  refuse = function(i, id)
    if refusals[i] == nil then
      local parent = read_parents(i, id)
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
    staged[#staged + 1] = id
    local kind = not place and 'f' or doom and 'x' or runs and runs[i] and 'r' or 'c'
    waits[#waits + 1], waits[#waits + 2] = id, kind .. graph .. (not place and '' or doom or table.concat(open))
    if place then places[#places + 1], places[#places + 2] = text(place), id end
    if #all > 0 then parents[#parents + 1], parents[#parents + 2] = id, table.concat(all) end
    for j = 1, #own do links[#links + 1] = own[j] end
  end,
  flush = function()
    call('HSET', K.waits, waits)
    call('HSET', K.parents, parents)
    call('ZADD', K.awaiting, places)
    call('ZADD', K.children, links)
    waits, parents, places, links = {}, {}, {}, {}
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
