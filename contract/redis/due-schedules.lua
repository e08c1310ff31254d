-- @include scheduled.lua
-- due-schedules: what a sweep has to do about schedules.
-- KEYS: schedules nextFirings firings
-- In:  now, or nothing for the server's time; limit.
-- Out: [now, since, next, due, item…]. since: as of `firing`. next: when the first schedule fires that is not due; -1: there is none.
--      due: how many are due, at most `limit`, longest due first, then by name. Two items for each: its name and its value. Then two
--      items for each firing that was decided a second ago or more, at most `limit`: its id and its value. Its process may have ended:
--      push its jobs by `fire`, and call `fired`.

local now, limit = now_of(ARGV[1]), tonumber(ARGV[2])
local SLOW = 1000 -- ms
local after = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
local names = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', text(now), 'LIMIT', 0, limit)
local out = { now, since_of(KEYS[3], now), after and tonumber(after) or -1, #names }
for _, name in ipairs(names) do
  out[#out + 1], out[#out + 2] = name, redis.call('HGET', KEYS[1], name) or ''
end
if redis.call('HLEN', KEYS[3]) > 0 then
  local firings = redis.call('HGETALL', KEYS[3])
  local left = limit
  for i = 1, #firings, 2 do
    local _, list = cmsgpack.unpack_one(firings[i + 1])
    if left > 0 and math.abs(now - list[1]) >= SLOW then
      left = left - 1
      out[#out + 1], out[#out + 2] = firings[i], firings[i + 1]
    end
  end
end
return out
