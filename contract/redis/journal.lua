-- @include common.lua
-- @include jobs.lua
-- @include journals.lua
-- @include log.lua
-- journal: claims add entries to the journals of their jobs.
-- Head: counts: how many entries each claim has; logs: as of `complete`.
-- In:  two items per claim: id, fence. Behind those two items per entry, in the order of the claims: its name, and what it holds, as of
--      `entries:ID`.
-- Out: per claim, 0: ok, 1: stale or 2: full; none of the last ones if the entries are large: send those again.
-- Invariant: an entry with a name that the journal has is left out, so a repetition does no harm. Of a claim that is full, no entry is
--      added.

local counts, logs = HEAD[5], HEAD[6]
local ids, outcomes, first = {}, {}, 3 + 2 * #counts
for i = 1, #counts do ids[i] = ARGV[i * 2 + 1] end
know()
local found, held = hmget(K.states, ids), redis.call('ZMSCORE', K.running, unpack(ids))

for i, id in ipairs(ids) do
  if read_bytes >= LARGE then break end
  outcomes[i] = 1
  local state = found[i] and cmsgpack.unpack(found[i])
  if state and state[2] == tonumber(ARGV[i * 2 + 2]) and state[1] == 'running' and held[i] then
    if logs then add_log(id, logs[i]) end
    local plan = plan_entries(id, first, counts[i])
    outcomes[i] = plan and 0 or 2
    if plan then add_entries(plan) end
  end
  first = first + 2 * counts[i]
end
return outcomes
