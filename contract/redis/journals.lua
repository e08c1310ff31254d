-- What scripts share that add to the journals of jobs: contract/steps.md. Needs jobs.lua.

local MAX_ENTRIES, MAX_BYTES = 10000, 16777216
local COST = 1000 -- bytes: to add or remove an entry, or to link a job, takes as long as to read so many
local SIGNAL = 33 -- `!`
local NOT_COUNTED = 5 -- bytes of what an entry holds: the length of the meta, the encoding

local function is_signal(name) return string.byte(name) == SIGNAL end

-- @return the numbers by these names, false for those that are not there
local function numbers_of(order, names)
  local numbers = {}
  for i = 1, #names, MANY do
    for _, number in ipairs(redis.call('ZMSCORE', order, unpack(names, i, math.min(i + MANY - 1, #names)))) do
      numbers[#numbers + 1] = number
    end
  end
  return numbers
end

-- Entries for a job: of each two arguments of the script, from the place `first` on: its name, and what it holds. Changes nothing.
-- @return what `add_entries` takes; nil: the journal would outgrow a bound
local function plan_entries(id, first, count)
  local packed = redis.call('HGET', K.journals, id)
  local kept = packed and cmsgpack.unpack(packed) or { 0, 0, 0, 0 }
  local plan = { id = id, is_known = packed, kept = kept, scores = {}, values = {}, bytes = 0 }
  local names, places, seen = {}, {}, {}
  for at = first, first + 2 * count - 2, 2 do
    local name = ARGV[at]
    if not seen[name] then
      seen[name] = true
      names[#names + 1], places[#places + 1] = name, at
    end
  end
  if #names == 0 then return plan end
  plan.order, plan.entries = journal_keys(id)
  local known = packed and numbers_of(plan.order, names) or {}
  for i, name in ipairs(names) do
    if not known[i] then
      local value, n = ARGV[places[i] + 1], #plan.values
      kept[4] = kept[4] + 1
      plan.scores[n + 1], plan.scores[n + 2] = text(kept[4]), name
      plan.values[n + 1], plan.values[n + 2] = name, value
      plan.bytes = plan.bytes + #name + #value - NOT_COUNTED
      if is_signal(name) then kept[2] = kept[2] + 1 end
    end
  end
  local added = #plan.values / 2
  kept[1], kept[3] = kept[1] + added, kept[3] + plan.bytes
  if added > 0 and (kept[1] > MAX_ENTRIES or kept[3] > MAX_BYTES) then return nil end
  return plan
end

local function keep_journal(id, kept)
  redis.call('HSET', K.journals, id, cmsgpack.pack(kept))
  if Q.steps then return end
  redis.call('HSET', K.queue, 'steps', 1)
  Q.steps = true
end

-- Counts as what the script reads: a call leaves the rest of many large ones to another.
local function add_entries(plan)
  if #plan.values == 0 then return end
  call('ZADD', plan.order, plan.scores)
  call('HSET', plan.entries, plan.values)
  keep_journal(plan.id, plan.kept)
  read_bytes = read_bytes + plan.bytes + COST * #plan.values / 2
end

-- The job waits without a worker. Its entries have been added.
local function note_parked(plan, reason)
  redis.call('HSET', K.parked, plan.id, reason)
  if not plan.is_known and #plan.values == 0 then keep_journal(plan.id, plan.kept) end
end

-- What the worker added to the journal of a job of the queue goes, from a number on.
local function forget_entries(id, from)
  local packed = redis.call('HGET', K.journals, id)
  if not packed then return end
  local kept, order, entries = cmsgpack.unpack(packed), journal_keys(id)
  local names, gone = redis.call('ZRANGEBYSCORE', order, text(from), '+inf'), {}
  for _, name in ipairs(names) do
    if not is_signal(name) then
      gone[#gone + 1] = name
      kept[3] = kept[3] - #name - redis.call('HSTRLEN', entries, name) + NOT_COUNTED
    end
  end
  kept[1] = kept[1] - #gone
  call('ZREM', order, gone)
  call('HDEL', entries, gone)
  keep_journal(id, kept)
  read_bytes = read_bytes + COST * #names
end
