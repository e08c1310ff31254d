-- @include common.lua
-- heartbeat: workers claim now, and some are gone.
-- Head: gone: a list of ids; workers: a list of lists [id, queue, host, pid, slots, busy, then per lane its minPriority and reserve].
-- In:  nothing.
-- Out: per worker, whether its queue is there: 1 or 0.
-- Keeps: workers HASH id → MessagePack of a list of lists [queue, host, pid, slots, busy, since, seen, then per lane its
--      minPriority and reserve], one per queue that it claims from;
--      claimed HASH queue → when a worker of it was last heard of.

local FORGOTTEN = 60000 -- ms
local known = {}
for _, id in ipairs(HEAD[5]) do redis.call('HDEL', K.workers, id) end
for i, beat in ipairs(HEAD[6]) do
  local id, queue, since, entries = beat[1], beat[2], NOW, {}
  local kept = redis.call('HGET', K.workers, id)
  for _, entry in ipairs(kept and cmsgpack.unpack(kept) or {}) do
    if entry[1] ~= queue then entries[#entries + 1] = entry
    elseif NOW - entry[7] <= FORGOTTEN then since = entry[6] end
  end
  local entry = { queue, beat[3], beat[4], beat[5], beat[6], since, NOW }
  for at = 7, #beat do entry[at + 1] = beat[at] end
  entries[#entries + 1] = entry
  redis.call('HSET', K.workers, id, cmsgpack.pack(entries))
  known[i] = redis.call('SISMEMBER', K.queues, queue)
  if known[i] == 1 then redis.call('HSET', K.claimed, queue, text(NOW)) end
end
return known
