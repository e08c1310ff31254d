-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include graph.lua
-- @include endings.lua
-- @include once.lua
-- @include stopping.lua
-- @include settle.lua
-- @include back.lua
-- @include journals.lua
-- requeue: dead or cancelled jobs get another life.
-- Head: limit: of the queue, up to so many dead ones, longest dead first; from: how many of those to pass over; until: only those that were
--       dead at this time, nil: all. nil: jobs by their ids. forget: of these, entries of the worker with this number or a higher one go;
--       nil: none.
-- In:  ids of the jobs, or nothing.
-- Out: [back, stayed, now, left, queue…]: how many came back; how many were looked at and stay; how many were left to another call, since
--      jobs are large; the queues to which jobs came back.
-- Invariant: place, fence and last error are kept; the attempts begin anew. One whose key a live job has stays as it is. Looks at `limit`
--      jobs at most.

local limit, from, until_time, forget_from = HEAD[5], HEAD[6], HEAD[7], HEAD[8]
local back, stayed, left, ids = 0, 0, 0, {}

local function requeue(id)
  local state = state_of(id)
  if not state or (state[1] ~= 'dead' and state[1] ~= 'cancelled') then return end
  local list = facts(visit(id))
  local due = state[4] > 0 and state[4] or list[2]
  -- Those that came back since then and died again were due no sooner.
  if until_time and state[6] == until_time and due >= until_time or not send_back(id, state, list) then
    stayed = stayed + 1
    return
  end
  if forget_from and Q.steps then forget_entries(id, forget_from) end
  back = back + 1
  Q.came_back = true
end

if not limit then for i = 3, #ARGV do ids[i - 2] = ARGV[i] end
else ids = redis.call('ZRANGEBYSCORE', K.dead, '-inf', until_time and text(until_time) or '+inf', 'LIMIT', from, limit) end
may_write()
for i = 1, #ids do
  if read_bytes >= LARGE then
    left = #ids - i + 1
    break
  end
  requeue(ids[i])
end
enter_back()
flush()
local out = { back, stayed, NOW, left }
for _, q in ipairs(order) do
  if q.came_back then out[#out + 1] = q.name end
end
return out
