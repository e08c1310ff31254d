-- @include common.lua
-- @include jobs.lua
-- entries: what journals hold.
-- Head: room: bytes that the answer may have; nil: 4 MiB, and one entry at least.
-- In:  two items per job: id; the number of the last entry that is not wanted, or 0.
-- Out: [room, page…]: what is left of the room, for the jobs of a further call. Per job nil: unknown; else a list [more, entry…], four
--      items per entry: number, name, meta, the encoded body, or nothing. more: 1: there are further ones.
-- Invariant: changes nothing.

local FEW, STEP = 8, 500 -- entries that are read in one command: how large they are is not known before
local room, is_first = HEAD[5] or LARGE, not HEAD[5]

local function page_of(id, after, fits)
  local order, entries = journal_keys(id)
  local page, most, largest = { 0 }, fits and STEP or FEW, 1
  while true do
    local told = redis.call('ZRANGEBYSCORE', order, '(' .. after, '+inf', 'WITHSCORES', 'LIMIT', 0, room > 0 and most or 1)
    if #told == 0 then return page end
    if room <= 0 then
      page[1] = 1
      return page
    end
    local names = {}
    for i = 1, #told, 2 do names[#names + 1] = told[i] end
    for i, value in ipairs(hmget(entries, names)) do
      local meta_ends = 4 + struct.unpack('>I4', value)
      local body = string.sub(value, meta_ends + 1)
      if body == '-' then body = '' end
      local size, n = #names[i] + meta_ends - 4 + math.max(0, #body - 1), #page
      if size > room and not is_first then
        -- So the call reads no more.
        page[1], room = 1, 0
        return page
      end
      is_first = false
      room, largest = room - size, math.max(largest, size)
      page[n + 1], page[n + 2], page[n + 3], page[n + 4] = tonumber(told[i * 2]), names[i], string.sub(value, 5, meta_ends), body
    end
    if #names < most then return page end
    after = told[#told]
    most = math.max(1, math.min(STEP, math.floor(room / largest)))
  end
end

local ids, out = {}, { 0 }
for i = 3, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
for i, packed in ipairs(hmget(K.journals, ids)) do
  local page = false
  if packed then page = page_of(ids[i], ARGV[i * 2 + 2], cmsgpack.unpack(packed)[3] <= room)
  elseif redis.call('HEXISTS', K.jobs, ids[i]) == 1 then page = { 0 } end
  out[i + 1] = page
end
out[1] = math.max(0, room)
return out
