-- last-claims: when workers of queues were last heard of. It includes nothing, as `heartbeat`.
-- KEYS: claimed
-- In:  now, or nothing for the server's time; the names of the queues.
-- Out: [now, time…]: per queue its time as text, or nothing.

local time = redis.call('TIME')
local out = { tonumber(ARGV[1]) or time[1] * 1000 + math.floor(time[2] / 1000) }
for i = 2, #ARGV do out[i] = redis.call('HGET', KEYS[1], ARGV[i]) end
return out
