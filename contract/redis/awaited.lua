-- awaited: links whose parents the store did not know when their children were restored. It runs on the key of the whole store,
-- {PREFIX}:awaited, a ZSET of links, all of score 0: the parent, the child, the part of the child.
-- KEYS: awaited
-- In:  `add` and links; or `drop` and links; or `of` and ids of parents; or `all`, a limit and a link behind which to begin, or nothing.
-- Out: links: of these parents, up to 1,000; or the next ones. Else nothing.

local AWAITED, what = KEYS[1], ARGV[1]
if what == 'all' then return redis.call('ZRANGEBYLEX', AWAITED, '(' .. ARGV[3], '+', 'LIMIT', 0, ARGV[2]) end
local out = {}
for i = 2, #ARGV do
  if what == 'add' then
    redis.call('ZADD', AWAITED, 0, ARGV[i])
  elseif what == 'drop' then
    redis.call('ZREM', AWAITED, ARGV[i])
  else
    local last = '(' .. ARGV[i] .. string.rep('\255', 17)
    for _, link in ipairs(redis.call('ZRANGEBYLEX', AWAITED, '(' .. ARGV[i], last, 'LIMIT', 0, 1000 - #out)) do out[#out + 1] = link end
  end
end
return out
