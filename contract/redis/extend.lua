-- @include common.lua
-- extend: a worker is still at its jobs.
-- KEYS: queue states running progress
-- In:  [now, bell, lease, items], three items per claim: id, fence, progress as MessagePack (or false: nothing new).
-- Out: a list with, per claim, 0: ok, 1: stale, 2: ended by a cancel.
-- Invariant: a lease is never shortened.

local QUEUE, STATES, RUNNING, PROGRESS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local input = cmsgpack.unpack(ARGV[1])
local now, lease, items = clock(input[1]), input[3], input[4]
local count = #items / 3
local till = string.format('%.17g', math.min(now + lease, SPAN - 1))
local ids, outcomes, leases, reports = {}, {}, {}, {}
for i = 1, count do ids[i] = items[i * 3 - 2] end
local found = hmget(STATES, ids)

for i = 1, count do
  outcomes[i] = '\1'
  if found[i] then
    local letter, _, fence = decode(found[i])
    if fence == items[i * 3 - 1] then
      if letter == 'c' then outcomes[i] = '\2' end
      if letter == 'r' then
        outcomes[i] = '\0'
        leases[#leases + 1] = till
        leases[#leases + 1] = ids[i]
        if items[i * 3] then
          reports[#reports + 1] = ids[i]
          reports[#reports + 1] = items[i * 3]
        end
      end
    end
  end
end

if #leases > 0 then
  redis.call('HDEL', QUEUE, '')
  for i = 1, #leases, MANY do
    redis.call('ZADD', RUNNING, 'XX', 'GT', unpack(leases, i, math.min(i + MANY - 1, #leases)))
  end
  call('HSET', PROGRESS, reports)
end
return list_of(count) .. table.concat(outcomes)
