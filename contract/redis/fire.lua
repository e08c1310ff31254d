-- @include common.lua
-- @include waiting.lua
-- @include run.lua
-- @include pushes.lua
-- fire: stores the jobs of firings that `firing` has decided.
-- KEYS: queue jobs states keys scheduled pages waiting lines touched awaiting parents graphs staged @due @fired
-- Head: as of `push`, then decided: when `firing` decided them, or `due-schedules` told of them, by its server's time;
--       since: as it answers.
-- In:  as of `push`.
-- Out: as of `push`. A job that an earlier call has pushed and that is gone is 0.
-- Invariant: a job is pushed once, however often this is called. A call that comes ten minutes after `decided` does nothing: [2].

local K = keys_of('queue jobs states keys scheduled pages waiting lines touched awaiting parents graphs staged @due @fired')
local LATE, REMEMBERED, KEPT = 600000, 3600000, 2592000000 -- ms
-- A replica that became the master may be behind in time.
local last = tonumber(redis.call('ZREVRANGE', K['@fired'], 0, 0, 'WITHSCORES')[2]) or 0
if math.max(NOW, last) - HEAD[11] > LATE then return { 2 } end
local ids, fired, marks = ids_in(ARGV[3]), {}, {}
for i, id in ipairs(ids) do
  fired[id] = redis.call('ZSCORE', K['@fired'], id)
  marks[i * 2 - 1], marks[i * 2] = text(NOW), id
end
local out = push_jobs(K, ids, fired)
if #out == 0 then return out end
call('ZADD', K['@fired'], marks)
-- Of a firing that is not forgotten yet a sweep will push the jobs once more, be it after days without any process.
redis.call('ZREMRANGEBYSCORE', K['@fired'], '-inf', text(math.min(NOW, HEAD[12]) - REMEMBERED))
redis.call('PEXPIRE', K['@fired'], KEPT)
return out
