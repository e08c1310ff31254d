-- Jobs that wait for others: contract/graphs.md. To settle: settle.lua.
--
--   links     ZSET, all of score 0, of three kinds of members, each a letter and two ids:
--               `o` parent child   an open link: the child waits for the parent, which the pond may not know yet
--               `c` parent child   a closed one
--               `p` child parent   the same link, from the other side
--   waits     HASH id of a job that has links → 2 × how many links are open by which it waits, and 1 more if its onDead is `run`.
--             It holds for a blocked job; of others it only says that there are links
--   settling  ZSET, a line: `0`, `1`, `2` or `3` and the id of a job that is done, dead, cancelled or was removed, whose open links are to
--             be closed; `u` and the id of a job that is gone, whose links are to go
--
--   a job ends ──end_parent──► the end of the line ──settle──► a turn: some of its links are closed ──► gone, or the end of the line
--
-- A job whose links do not fit into a turn goes to the end of the line, so that none waits for another one's thousands.

local DONE, DEAD, CANCELLED, REMOVED = '0', '1', '2', '3'
local STEP, TURN = 1000, 100 -- links that one call settles, and that one turn does
local AFTER_ID = string.rep('\255', 17)

local any_waits
local function has_waits()
  if any_waits == nil then any_waits = redis.call('EXISTS', K.waits) == 1 end
  return any_waits
end

local line_end
local function join_line(entry)
  if not line_end then line_end = tonumber(redis.call('ZREVRANGE', K.settling, 0, 0, 'WITHSCORES')[2]) or 0 end
  line_end = line_end + 1
  redis.call('ZADD', K.settling, line_end, entry)
end

-- Live jobs have ended.
local function end_parents(ids, how)
  if not has_waits() then return end
  for i, value in ipairs(hmget(K.waits, ids)) do
    if value then join_line(how .. ids[i]) end
  end
end

local function end_parent(id, how) end_parents({ id }, how)
end

-- Jobs go.
local function forget_links(ids)
  if not has_waits() then return end
  for i, value in ipairs(hmget(K.waits, ids)) do
    if value then join_line('u' .. ids[i]) end
  end
end

-- @return up to so many ids that stand behind this letter and id in `links`
local function linked(letter, id, limit)
  local start = letter .. id
  local ids = redis.call('ZRANGEBYLEX', K.links, '[' .. start, '[' .. start .. AFTER_ID, 'LIMIT', 0, limit)
  for i = 1, #ids do ids[i] = string.sub(ids[i], 18) end
  return ids
end
