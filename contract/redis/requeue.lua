-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- @include back.lua
-- requeue: dead or cancelled jobs get another life.
-- KEYS: queue jobs states keys pages waiting dead cancelled lines touched
-- Head: limit: up to so many dead ones, longest dead first; from: how many of those to pass over; until: only those that were dead at this
--       time, nil: all. With items, 0 and 0.
-- In:  ids of the jobs.
-- Out: [how many came back, how many were looked at and stay, now, how many were left to another call, since jobs are large].
-- Invariant: place, fence and last error are kept; the attempts begin anew. One whose key a live job has stays as it is. Looks at `limit`
--      jobs at most.

local K = keys_of('queue jobs states keys pages waiting dead cancelled lines touched')
GROUPED = redis.call('HGET', K.queue, 'limits') == 'groups'
local limit, from, until_time = HEAD[6], HEAD[7], HEAD[8]
local stayed = 0

local function requeue(id)
  local state = state_of(K, id)
  if not state or (state[1] ~= 'dead' and state[1] ~= 'cancelled') then return end
  local list = facts_of(K, id)
  local due = state[4] > 0 and state[4] or list[2]
  -- Those that came back since then and died again were due no sooner.
  if until_time and state[6] == until_time and due >= until_time or not send_back(K, id, state, list) then stayed = stayed + 1 end
end

local ids, left = {}, 0
if limit == 0 then for i = 3, #ARGV do ids[i - 2] = ARGV[i] end
else ids = redis.call('ZRANGEBYSCORE', K.dead, '-inf', until_time and text(until_time) or '+inf', 'LIMIT', from, limit) end
for i = 1, #ids do
  if read_bytes >= LARGE then
    left = #ids - i + 1
    break
  end
  requeue(ids[i])
end
local back = entering_count
if entered(K) then wake(K) end
return { back, stayed, NOW, left }
