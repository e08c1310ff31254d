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
-- @include undecided.lua
-- @include pushes.lua
-- stage: stores jobs of a graph, which wait until it is decided.
-- KEYS: queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors lines slots groups
--      blocked touched awaiting parents children ended graphs staged @due @ends
-- Head: as of `push`, then: home: the part that decides; alone: all jobs and their parents are in this partition, and in this call: decide
--      here
--       and now; whole; parents: of each job, how many bytes its value in `parents` has; children: of each, how many its value in
--       `children`
--       has, of its children in the call; known: of each, how many of its parents, the first ones, are in this partition, but not in the
--       call, nil: of all none; ended: of each, 1 if the job that it is part of has ended or is unknown, whose id then stands behind its
--       parents, else 0, nil: of all.
-- In:  as of `push`; then the id of the graph; then of each job its value in `parents` and that in `children`. A parent that is in no
--      partition counts among those of this one.
-- Out: as of `push`, and of a job with an unknown parent: `orphan` and that parent, a list. `held` is of jobs of other graphs. Then links.
--      With `alone`, nothing was stored if a job has `held`, or one with children in the call was not stored, or, of `whole`, any was not,
--      unless it is there.
-- Invariant: without `alone`, nothing is counted as pushed, and nothing starts, before `decided`. Links between jobs of the call, and
--      those to
--      parents of this partition, are made here, the others by `link`.

local K = keys_of(
  'queue jobs states keys scheduled running pages waiting done dead cancelled results progress errors lines slots groups '
    .. 'blocked touched awaiting parents children ended graphs staged @due @ends')
local home, alone, whole, parents_sizes, children_sizes, known, ended = unpack(HEAD, 11, 17)
local graph = ARGV[5]
local UNDECIDED = 60000 -- ms after which a sweep decides
local FINAL = { done = DONE, dead = DEAD, cancelled = CANCELLED }
local ids, from = ids_in(ARGV[3]), { 1 } -- from: where the values of each job begin
for i = 1, #ids do from[i + 1] = from[i] + parents_sizes[i] + (ended and ended[i] * 16 or 0) + children_sizes[i] end

-- Of the job that is looked at: its value in `parents`; how the first parent ended that ended badly. Of all, the links that parents
-- outside of
-- the call get.
local value, doom
local staged, values, places, children, links = {}, {}, {}, {}, {}
local PART_BEHIND = link_entry('', PART)
STAGED = true

-- Reads the parents of a job that are here, but not in the call. @return why it is not stored: one is unknown, or of a graph that is not
-- decided, and may come to nothing
local function read_known(id, count)
  local kind, _, open = parents_head(value)
  local still, closed, first = {}, {}, nil
  for at = OPEN, OPEN + count * 16 - 1, 16 do
    local parent = string.sub(value, at, at + 15)
    local packed = redis.call('HGET', K.states, parent)
    if not packed and redis.call('HEXISTS', K.jobs, parent) == 0 then return { 'orphan', parent } end
    local held = undecided(K, parent, graph)
    if held then return held end
    local how = packed and FINAL[cmsgpack.unpack(packed)[1]]
    if not how then
      part_ended(K, parent)
      still[#still + 1] = parent
    elseif how ~= DONE and kind == 'c' and not doom then doom, first = how, parent
    else closed[#closed + 1] = parent end
  end
  local others = string.sub(value, OPEN + count * 16)
  if doom then value = parents_value(tostring(doom), graph, 0, first .. table.concat(still) .. others .. table.concat(closed))
  else value = parents_value(kind, graph, open - #closed, table.concat(still) .. others .. table.concat(closed)) end
  return nil
end

local function link_known(id, i)
  for at = from[i] + OPEN - 1, from[i] + OPEN - 2 + known[i] * 16, 16 do
    local parent = string.sub(ARGV[6], at, at + 15)
    links[parent] = (links[parent] or '') .. id .. PART_BEHIND
  end
end

-- Whether the children of a job that is there are those that the call gives it, and are all here.
local function has_children_of(i, id)
  local given, page = string.sub(ARGV[6], from[i + 1] - children_sizes[i] + 3, from[i + 1] - 1), redis.call('HGET', K.children, id)
  if page and string.sub(page, 1, 3) ~= '\0\0\0' then page = '\0\0\0' .. redis.call('HGET', K.children, page_name(id, 0)) end
  if not page or string.sub(page, 4, #given + 3) ~= given then return false end
  local at = 1
  while at <= #given do
    if redis.call('HEXISTS', K.jobs, string.sub(given, at, at + 15)) == 0 then return false end
    at = at + 17 + string.byte(given, at + 16)
  end
  return true
end

local refusals = {}
STAGE = {
  graph = graph,
  is_own = function(i, id)
    local kept = redis.call('HGET', K.parents, id)
    if kept then return string.sub(kept, 2, 17) == graph end
    -- What waits for nothing is not told of its graph any more once that is decided. Nobody of the call waits for one without children.
    return children_sizes[i] == 0 or alone and has_children_of(i, id)
  end,
  refuse = function(i, id)
    if refusals[i] then return refusals[i] end
    value, doom = string.sub(ARGV[6], from[i], from[i] + parents_sizes[i] - 1), nil
    local refusal = known and known[i] > 0 and read_known(id, known[i])
    local behind = from[i] + parents_sizes[i]
    if not refusal and ended and ended[i] == 1 then refusal = { 'orphan', string.sub(ARGV[6], behind, behind + 15) } end
    refusals[i] = refusal
    return refusal
  end,
  is_doomed = function() return doom ~= nil end,
  store = function(i, id, place)
    staged[#staged + 1] = id
    local n = #values
    values[n + 1], values[n + 2] = id, place and value or parents_value('f', graph, 0, '')
    local p = #places
    if place then places[p + 1], places[p + 2] = text(place), id end
    if known and known[i] > 0 then link_known(id, i) end
    if children_sizes[i] > 0 then
      local m = #children
      children[m + 1], children[m + 2] = id, string.sub(ARGV[6], from[i + 1] - children_sizes[i], from[i + 1] - 1)
    end
  end,
  flush = function()
    call('HSET', K.parents, values)
    call('ZADD', K.awaiting, places)
    call('HSET', K.children, children)
    add_links(K, links)
    values, places, children, links = {}, {}, {}, {}
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
  local is_stored = out[i] == 0
  if is_list and out[i][1] == 'held' or whole and (is_list or out[i] == 1) then is_committed = false end
  if not is_stored and children_sizes[i - 1] > 0 then is_committed = false end
end
local kept, limits = keep(K, false)
decide_staged(K, graph, is_committed, #ids, kept)
if is_committed then gone_on_all(K, kept, limits) else removed_all(K, limits) end
return with_links(K, out)
