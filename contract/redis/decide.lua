-- decide: what becomes of a graph whose jobs lie in several partitions.
-- KEYS: `graph:ID` of the partition of its first job, the id in hex.
-- In:  committed or aborted.
-- Out: [what was decided, now or before].
-- Invariant: it is decided once. The client that pushed the graph deletes the key when all jobs have started; else it stays for 30 days.

if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 2592000000) then return { redis.call('GET', KEYS[1]) } end
return { ARGV[1] }
