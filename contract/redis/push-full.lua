-- @include common.lua
-- @include version.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include run.lua
-- @include new-queue.lua
-- @include graph.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- @include settle.lua
-- @include linking.lua
-- @include changed.lua
-- @include pushes.lua
-- @include meet.lua
-- @include plan.lua
-- push-full: stores jobs of which some have `once`, or wait for others, or of which all are stored or none.
-- Head: as of `push`, then: whole; links: nil, or of each job false or a list [count, runs, part]: how many parents it has; whether its
--       onDead is `run`; whether it is part of the work of another job. values: a tenth entry of a list is `once`: [remember, replace,
--       maxWait,
--       follow], each nil where absent; remember: ms after the job's end for which its key is remembered, below 0: after its push.
-- In:  as of `push`; then the ids of the parents of each job, and behind them that of the job that it is part of.
-- Out: as of `push`, with further outcomes: 17 bytes: the id of the job that was replaced, and `r`; a list of `orphan` and the id of a
--      parent that the pond does not know, or of `held` and the id of the job that has the key of one that waits; `w`: withheld, as another
--      job of a whole push could not be stored.
-- Invariant: as of `push`. All links of the jobs are made in this call.

local whole, links = HEAD[10], HEAD[11]
local at_link = 1
for i, given in ipairs(links or {}) do
  if given then
    local behind = at_link + given[1] * 16
    -- [the ids of the parents, runs, the job that it is part of]
    links[i] = { string.sub(ARGV[5], at_link, behind - 1), given[2], given[3] and string.sub(ARGV[5], behind, behind + 15) }
    at_link = given[3] and behind + 16 or behind
  end
end
local ids, out, taken = ids_in(ARGV[3]), { 0 }, {}
-- Ids that were answered for others of the call.
local others, has_others = {}, false

local function rename(waits)
  local after, seen = {}, {}
  for _, parent in ipairs(ids_in(waits[1])) do
    parent = others[parent] or parent
    if not seen[parent] then after[#after + 1] = parent end
    seen[parent] = true
  end
  waits[1], waits[3] = table.concat(after), others[waits[3]] or waits[3]
end

-- The id by which the call named a parent.
local function as_given(after, id)
  for _, parent in ipairs(ids_in(after)) do
    if (others[parent] or parent) == id then return parent end
  end
end

local function state_of_job(id)
  if taken[id] then return doomed[id] and CANCELLED or 'live' end
  return state_in_pond(id)
end

GRAPH = {
  stands_for = function(id, other)
    if other ~= id then others[id], has_others = other, true end
  end,

  has_parents = function(i) return links and links[i] and #links[i][1] > 0 end,

  -- What a job waits for, and the first parent that is not known; nil: it has no links.
  waits = function(i)
    local waits = links and links[i]
    if not waits then return nil, nil end
    local after, part_of = waits[1], waits[3]
    if has_others then rename(waits) end
    local orphan = judge(waits, state_of_job)
    if not orphan and waits[3] and state_of_job(waits[3]) ~= 'live' then return waits, part_of end
    return waits, orphan and as_given(after, orphan)
  end,

  link = function(id, waits)
    link_job(id, waits, taken)
    if not waits[3] then return end
    -- The children of the call must be there.
    store()
    adopt(id, waits[3])
  end,

  flush = flush_links,
}

if whole then
  local answer = plan_refusal(ids, links)
  if answer then return answer end
end
local all_pushed = push_jobs(ids, 1, #ids, out, taken, 1)
out[1] = pushed()
cancel_doomed()
settle()
flush()
return all_pushed and { out[1] } or out
