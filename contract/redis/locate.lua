-- locate: which of these partitions know a job. For look-ups by id alone, which do not name a queue.
-- KEYS: `jobs` of each partition, all of one hash tag.
-- In:  ids.
-- Out: per id, the number of the first key that knows it, from 1; 0: none.
-- Invariant: changes nothing. Costs one look-up per key and id: callers ask for a few hundred of both at once.

local out = {}
for i = 1, #ARGV do
  out[i] = 0
  for key = 1, #KEYS do
    if redis.call('HEXISTS', KEYS[key], ARGV[i]) == 1 then
      out[i] = key
      break
    end
  end
end
return out
