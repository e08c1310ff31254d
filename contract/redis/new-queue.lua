-- What scripts share that make queues. Needs version.lua, run.lua.

-- A queue comes into being. Its run is noted with the first job, so that a claim that is lost cannot have been the one to note it. Of a
-- server that was emptied, or another one at the same address, fences do not begin anew.
local function make_queue()
  local floor = math.max(tonumber(redis.call('GET', K.floor) or 0), fresh_floor())
  redis.call('SADD', K.queues, QUEUE)
  redis.call('SET', K.version, VERSION, 'NX')
  redis.call('HSET', K.queue, 'listed', 1, 'run', server_run() .. text(floor))
  redis.call('PERSIST', K.queue)
end
