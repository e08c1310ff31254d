-- heartbeat: workers claim now, and some are gone. It includes nothing, as its keys are the list's own: {PREFIX}:workers and the others.
-- KEYS: workers queues claimed
-- In:  MessagePack of [now, gone, workers]. now: nil for the server's time; gone: a list of ids; workers: a list of lists [id, queue, host,
--      pid, slots, busy, then per lane its minPriority and reserve].
-- Out: per worker, whether its queue is in the list: 1 or 0.
-- Keeps: workers HASH id → MessagePack of a list of lists [queue, host, pid, slots, busy, since, seen, then per lane its
--      minPriority and reserve], one per queue that it claims from: earlier clients read what they know;
--      claimed HASH queue → when a worker of it was last heard of.

local WORKERS, QUEUES, CLAIMED = KEYS[1], KEYS[2], KEYS[3]
local FORGOTTEN = 60000 -- ms
local head = cmsgpack.unpack(ARGV[1])
local time = redis.call('TIME')
local now = head[1] or time[1] * 1000 + math.floor(time[2] / 1000)
local known = {}
for _, id in ipairs(head[2]) do redis.call('HDEL', WORKERS, id) end
for i, beat in ipairs(head[3]) do
  local id, queue, since, entries = beat[1], beat[2], now, {}
  local kept = redis.call('HGET', WORKERS, id)
  for _, entry in ipairs(kept and cmsgpack.unpack(kept) or {}) do
    if entry[1] ~= queue then entries[#entries + 1] = entry
    elseif now - entry[7] <= FORGOTTEN then since = entry[6] end
  end
  local entry = { queue, beat[3], beat[4], beat[5], beat[6], since, now }
  for at = 7, #beat do entry[at + 1] = beat[at] end
  entries[#entries + 1] = entry
  redis.call('HSET', WORKERS, id, cmsgpack.pack(entries))
  known[i] = redis.call('HEXISTS', QUEUES, queue)
  if known[i] == 1 then redis.call('HSET', CLAIMED, queue, string.format('%.0f', now)) end
end
return known
