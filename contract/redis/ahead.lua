-- @include common.lua
-- @include jobs.lua
-- @include waiting.lua
-- ahead: how many waiting jobs come before one.
-- Head: nothing further.
-- In:  ids.
-- Out: per id, how many jobs of its queue come before it by priority and place, of its group in a grouped queue; -1: it does not wait.
-- Invariant: changes nothing. In a queue that is not grouped it stops counting at 1,000 or a little above.

local function ahead(id)
  local record = visit(id)
  if not record or (state_of(id) or NEW_STATE)[1] ~= 'waiting' then return -1 end
  local list = facts(record)
  if GROUPED then
    local name, entry = list[5] or '', line_entry(list[5], list[3], list[1], id, list[9])
    return redis.call('ZLEXCOUNT', K.lines, '[' .. name .. '\0', '(' .. entry)
  end
  local own, count, rank = page_at(list[3], list[1]), 0, 0
  while count < 1000 do
    local page = redis.call('ZRANGE', K.waiting, rank, rank)[1]
    if not page then break end
    local entries = redis.call('HGET', K.pages, page)
    if page == own then
      for _, entry in ipairs(entries_of(entries)) do
        if string.byte(entry) < list[1] % PAGE then count = count + 1 end
      end
      break
    end
    count, rank = count + #entries / ENTRY, rank + 1
  end
  return count
end

local out = {}
for i = 3, #ARGV do out[i - 2] = ahead(ARGV[i]) end
return out
