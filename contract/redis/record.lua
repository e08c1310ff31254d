-- @include common.lua
-- record: adds measured times to the current minute's histograms.
-- KEYS: histograms
-- Head: a list of four numbers per bucket: priority, metric (0 wait, 1 run), bucket, count.
-- In:  nothing.
-- Out: nothing.
-- Invariant: at most 60 minutes are kept, each in the field of its number modulo 60: MessagePack of
--      [minute, priority, metric, bucket, count, priority, …].

local HISTOGRAMS = KEYS[1]
local minute, items = math.floor(NOW / 60000), HEAD[6]
local kept = redis.call('HGET', HISTOGRAMS, minute % 60)
local slice = kept and cmsgpack.unpack(kept)
if not slice or slice[1] ~= minute then slice = { minute } end

local at = {}
for i = 2, #slice, 4 do at[slice[i] .. ':' .. slice[i + 1] .. ':' .. slice[i + 2]] = i + 3 end
for i = 1, #items, 4 do
  local name = items[i] .. ':' .. items[i + 1] .. ':' .. items[i + 2]
  if at[name] then
    slice[at[name]] = slice[at[name]] + items[i + 3]
  else
    local last = #slice
    for j = 0, 3 do slice[last + 1 + j] = items[i + j] end
    at[name] = last + 4
  end
end
redis.call('HSET', HISTOGRAMS, minute % 60, cmsgpack.pack(slice))
-- Also of a queue that is not there any more.
redis.call('PEXPIRE', HISTOGRAMS, 3660000)
return {}
