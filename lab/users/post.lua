-- For wrk: each request is a POST with a name of its own, so that lost and doubled rows can be told.
-- All of a request but the name is the same, and wrk.format would put it together anew each time.
local random, format = math.random, string.format
local head

init = function()
  math.randomseed(os.time())
  local body = format('{"name":"user %08x%08x"}', 0, 0)
  head = wrk.format('POST', nil, { ['content-type'] = 'application/json' }, body):sub(1, -#body - 1)
end

request = function()
  return head .. format('{"name":"user %08x%08x"}', random(0, 0x7fffffff), random(0, 0x7fffffff))
end

-- What load.ts reads. Latencies in microseconds.
done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(format('RESULT %d %d %d %d %d %d\n', summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(95), latency:percentile(99), failed))
end
