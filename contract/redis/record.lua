-- @include common.lua
-- record: adds measured times to the current minute's histograms.
-- Head: a list of four numbers per bucket: priority, metric (0 wait, 1 run), bucket, count.
-- In:  nothing.
-- Out: nothing.
-- Invariant: at most 60 minutes are kept, each in the field of its number modulo 60: MessagePack of
--      [minute, priority, metric, bucket, count, priority, …]. The queue's field `measured` has the same since the queue
--      came to be, with -1 as its minute.

local items = HEAD[5]

local function add(key, field, minute)
  local kept = redis.call('HGET', key, field)
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
  redis.call('HSET', key, field, cmsgpack.pack(slice))
end

local current = math.floor(NOW / 60000)
add(K.histograms, current % 60, current)
if redis.call('EXISTS', K.queue) == 1 then add(K.queue, 'measured', -1) end
-- Also of a queue that is not there any more.
redis.call('PEXPIRE', K.histograms, 3660000)
return {}
