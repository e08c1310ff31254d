-- @include common.lua
-- @include links.lua
-- settled: the children of ended jobs of this partition were told.
-- KEYS: queue jobs parents children ended @ends
-- Head: nothing further.
-- In:  three items per member of `ended` that `links` told: member, score, and where the links begin that are left, or nothing.
-- Out: nothing.
-- Invariant: a job that has ended once more meanwhile stays.

local K = keys_of('queue jobs parents children ended @ends')
may_write(K)
for i = 3, #ARGV, 3 do
  local member, from = ARGV[i], ARGV[i + 2]
  if redis.call('ZSCORE', K.ended, member) == ARGV[i + 1] then
    if from ~= '' then
      redis.call('HSET', K.queue, 'settled:' .. member, from)
    else
      redis.call('ZREM', K.ended, member)
      if #member == 16 then
        redis.call('HDEL', K.queue, 'settled:' .. member)
        if redis.call('HEXISTS', K.jobs, member) == 0 then forget_children(K, member) end
      end
    end
  end
end
return {}
