-- @include common.lua
-- @include jobs.lua
-- entries: what journals hold.
-- Head: room: bytes that the answer may have; nil: 4 MiB, and one entry at least. No answer has more than 2000 entries.
-- In:  two items per job: id; the number of the last entry that is not wanted, or 0.
-- Out: [room, page…]: what is left of the room, for the jobs of a further call. Per job nil: unknown; else a list [more, entry…], three
--      items per entry: its number, its name, and what it holds, as of `entries:ID`. more: 1: there are further ones.
-- Invariant: changes nothing.

local FEW, STEP = 8, 500 -- entries that are read in one command
local NOT_COUNTED = 5 -- bytes of what an entry holds: the length of the meta, the encoding
local room, is_first, left = HEAD[5] or LARGE, not HEAD[5], 2000 -- left: entries that the answer may still have

local function fits_in_room(name, bytes) return is_first or left > 0 and #name + bytes - NOT_COUNTED <= room end

-- There are further entries, and the call reads no more.
local function cut(page)
  page[1], room = 1, 0
  return page
end

-- @param average bytes of an entry of the journal
local function page_of(id, after, fits, average)
  local order, entries = journal_keys(id)
  local page, most, largest = { 0 }, fits and STEP or math.min(FEW, math.floor(room / average)), 1
  while true do
    most = math.max(1, most)
    local told = redis.call('ZRANGEBYSCORE', order, '(' .. after, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
    if #told == 0 then return page end
    local names = {}
    for i = 1, #told, 2 do names[#names + 1] = told[i] end
    if most == 1 and not fits_in_room(names[1], redis.call('HSTRLEN', entries, names[1])) then return cut(page) end
    for i, value in ipairs(hmget(entries, names)) do
      if not fits_in_room(names[i], #value) then return cut(page) end
      local size, n = #names[i] + #value - NOT_COUNTED, #page
      is_first, left = false, left - 1
      room, largest = room - size, math.max(largest, size)
      page[n + 1], page[n + 2], page[n + 3] = tonumber(told[i * 2]), names[i], value
    end
    if #names < most then return page end
    after = told[#told]
    most = math.min(STEP, math.floor(room / largest))
  end
end

local ids, out = {}, { 0 }
for i = 3, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
for i, packed in ipairs(hmget(K.journals, ids)) do
  local page = false
  if packed then
    local kept = cmsgpack.unpack(packed)
    page = page_of(ids[i], ARGV[i * 2 + 2], kept[3] <= room, kept[3] / math.max(1, kept[1]))
  elseif redis.call('HEXISTS', K.jobs, ids[i]) == 1 then page = { 0 } end
  out[i + 1] = page
end
out[1] = math.max(0, room)
return out
