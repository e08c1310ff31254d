-- @include common.lua
-- @include log.lua
-- extend: a worker is still at its jobs.
-- Head: lease (nil: the queue's); logs: as of `complete`.
-- In:  three items per claim: id, fence, progress as an encoded value, or nothing new.
-- Out: per claim, 0: ok, 1: stale, 2: ended by a cancel.
-- Invariant: a lease is never shortened.

local lease = HEAD[5] or tonumber(redis.call('HGET', K.queue, 'lease')) or DEFAULT.lease
local till = text(math.min(NOW + lease, SPAN - 1))
local ids, outcomes, leases, reports, told = {}, {}, {}, {}, {}
for i = 1, (#ARGV - 2) / 3 do ids[i] = ARGV[i * 3] end
local found, held = hmget(K.states, ids), redis.call('ZMSCORE', K.running, unpack(ids))

for i = 1, #ids do
  outcomes[i] = 1
  local state = found[i] and cmsgpack.unpack(found[i])
  if state and state[2] == tonumber(ARGV[i * 3 + 1]) then
    if state[1] == 'cancelled' then outcomes[i] = 2 end
    if state[1] == 'running' and held[i] then
      outcomes[i] = 0
      told[#told + 1] = i
      leases[#leases + 1], leases[#leases + 2] = till, ids[i]
      if ARGV[i * 3 + 2] ~= '' then reports[#reports + 1], reports[#reports + 2] = ids[i], ARGV[i * 3 + 2] end
    end
  end
end

if #leases > 0 then
  may_write()
  redis.call('ZADD', K.running, 'XX', 'GT', unpack(leases))
  call('HSET', K.progress, reports)
  for _, i in ipairs(HEAD[6] and told or {}) do add_log(ids[i], HEAD[6][i]) end
end
return outcomes
