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
--   a job ends ──end_parent──► `unsettled` ──settle──► all of its links are closed ──► settled
--                                            └─ there are too many ──► the end of the line
--   the end of the line ──sweep──► a turn: some more ──► settled, or the end again
--
-- So a call pays for its own jobs alone, and none in the line waits for another one's thousands.

local DONE, DEAD, CANCELLED, REMOVED = '0', '1', '2', '3'
-- What one call may settle, and one turn of the line: a link counts as one, a child that is released as two more, one that is cancelled as
-- six more. So a call takes some milliseconds at most.
local STEP, TURN, RELEASED, CANCELS = 600, 90, 2, 6
local AFTER_ID = string.rep('\255', 17)

local any_waits
local function has_waits()
  if any_waits == nil then any_waits = redis.call('EXISTS', K.waits) == 1 end
  return any_waits
end

local line_end, any_line
local function has_line()
  if any_line == nil then any_line = redis.call('EXISTS', K.settling) == 1 end
  return any_line
end

local function join_line(entry)
  any_line = true
  if not line_end then line_end = tonumber(redis.call('ZREVRANGE', K.settling, 0, 0, 'WITHSCORES')[2]) or 0 end
  line_end = line_end + 1
  redis.call('ZADD', K.settling, line_end, entry)
end

-- What this call has to settle: entries as of the line. The first that is left.
local unsettled, next_unsettled = {}, 1

local function note_links(letter, ids)
  if not has_waits() then return end
  for i, value in ipairs(hmget(K.waits, ids)) do
    if value then unsettled[#unsettled + 1] = letter .. ids[i] end
  end
end

-- Live jobs have ended.
local function end_parents(ids, how) note_links(how, ids) end

local function end_parent(id, how) end_parents({ id }, how)
end

-- Jobs go.
local function forget_links(ids) note_links('u', ids) end

local LIVE = { blocked = true, scheduled = true, waiting = true, running = true }

-- @return per id: whether it is a live job
local function are_live(ids)
  local live = {}
  for i, state in ipairs(hmget(K.states, ids)) do
    if state then live[i] = LIVE[cmsgpack.unpack(state)[1]] or false else live[i] = redis.call('HEXISTS', K.jobs, ids[i]) == 1 end
  end
  return live
end

-- @return up to so many ids that stand behind this letter and id in `links`
local function linked(letter, id, limit)
  local start = letter .. id
  local ids = redis.call('ZRANGEBYLEX', K.links, '[' .. start, '[' .. start .. AFTER_ID, 'LIMIT', 0, limit)
  for i = 1, #ids do ids[i] = string.sub(ids[i], 18) end
  return ids
end
