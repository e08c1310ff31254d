-- @include common.lua
-- workers: who was heard of in the last minute.
-- Head: nothing further.
-- In:  nothing.
-- Out: [now, id, entries…]: two items per worker: its id, and what `heartbeat` keeps of it, of which the entries that were heard of in the
--      last minute remain.
-- Invariant: changes nothing.

local FORGOTTEN = 60000 -- ms
local out, all = { NOW }, redis.call('HGETALL', K.workers)
for i = 1, #all, 2 do
  local entries = {}
  for _, entry in ipairs(cmsgpack.unpack(all[i + 1])) do
    if NOW - entry[7] <= FORGOTTEN then entries[#entries + 1] = entry end
  end
  if #entries > 0 then out[#out + 1], out[#out + 2] = all[i], cmsgpack.pack(entries) end
end
return out
