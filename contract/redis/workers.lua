-- workers: who was heard of in the last minute. It includes nothing, as `heartbeat`.
-- KEYS: workers queues awaited
-- In:  now, or nothing for the server's time; forget: 1: of a sweep, which wants to know the numbers only.
-- Out: [queues, awaited, now]: how many queues there are, how many links `awaited` has, and the time; behind them, unless it is of a
--      sweep, two items per worker: its id, and what `heartbeat` keeps of it, of which the entries that were heard of in the last minute
--      remain.
-- Invariant: a sweep looks at a few workers only, so that it costs the same with many.

local WORKERS, QUEUES = KEYS[1], KEYS[2]
local FORGOTTEN, FEW = 60000, 8 -- ms; workers that one sweep looks at
local time = redis.call('TIME')
local now = tonumber(ARGV[1]) or time[1] * 1000 + math.floor(time[2] / 1000)
local forget = ARGV[2] == '1'
local out = { redis.call('HLEN', QUEUES), redis.call('ZCARD', KEYS[3]), now }
local all = forget and redis.call('HRANDFIELD', WORKERS, FEW, 'WITHVALUES') or redis.call('HGETALL', WORKERS)
for i = 1, #all, 2 do
  local id, entries = all[i], {}
  for _, entry in ipairs(cmsgpack.unpack(all[i + 1])) do
    if now - entry[7] <= FORGOTTEN then entries[#entries + 1] = entry end
  end
  if #entries == 0 then
    if forget then redis.call('HDEL', WORKERS, id) end
  elseif not forget then out[#out + 1], out[#out + 2] = id, cmsgpack.pack(entries) end
end
return out
