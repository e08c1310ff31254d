-- @include common.lua
-- settled: the children of ended jobs of this partition were told.
-- KEYS: queue jobs children ended
-- Head: nothing further.
-- In:  three items per member of `ended` that `links` told: member, score, the last link that was settled; or nothing: all were.
-- Out: nothing.
-- Invariant: a job that has ended once more meanwhile stays.

local K = keys_of('queue jobs children ended')
may_write(K)
for i = 3, #ARGV, 3 do
  local member, last = ARGV[i], ARGV[i + 2]
  if redis.call('ZSCORE', K.ended, member) == ARGV[i + 1] then
    if last ~= '' then
      redis.call('HSET', K.queue, 'settled:' .. member, last)
    else
      redis.call('ZREM', K.ended, member)
      if #member == 16 then
        redis.call('HDEL', K.queue, 'settled:' .. member)
        if redis.call('HEXISTS', K.jobs, member) == 0 then
          redis.call('ZREMRANGEBYLEX', K.children, '(' .. member, '(' .. member .. string.rep('\255', 17))
        end
      end
    end
  end
end
return {}
