-- due: what a sweep has to do among all partitions of a hash tag.
-- KEYS: @due @ends
-- Head: nothing further. (It includes nothing: it is asked once a second by each process.)
-- In:  now, or nothing for the server's time; limit.
-- Out: [next, part…]: ms until the next scheduled job is due, or -1; up to `limit` parts to sweep, longest overdue first.
-- Invariant: costs what is due, not how many partitions there are. Where many are due at once, those that are handed out are due again in a
--      second, unless `sweep` says otherwise: so processes that sweep at the same time share the work, and none of it is lost with one of
--      them.

local MANY = 16
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local limit = tonumber(ARGV[2])
local function text(number) return string.format('%.17g', number) end

local next_due = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
local out, seen = { next_due and math.max(0, next_due - now) or -1 }, {}
for _, key in ipairs(KEYS) do
  for _, part in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', text(now), 'LIMIT', 0, limit)) do
    if not seen[part] and #out <= limit then
      seen[part] = true
      out[#out + 1] = part
    end
  end
end
if #out > MANY then
  -- Removes nothing, but lets a server without room write.
  redis.call('ZREM', KEYS[1], '')
  for i = 2, #out do
    for _, key in ipairs(KEYS) do redis.call('ZADD', key, 'XX', 'GT', text(now + 1000), out[i]) end
  end
end
return out
