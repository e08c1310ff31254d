-- For wrk: each request is a POST with a name of its own, so that lost and doubled rows can be told.
local headers = { ['content-type'] = 'application/json' }
local random, format, build = math.random, string.format, wrk.format

init = function()
  math.randomseed(os.time())
end

request = function()
  return build('POST', nil, headers, format('{"name":"user %08x%08x"}', random(0, 0x7fffffff), random(0, 0x7fffffff)))
end

-- What load.ts reads. Latencies in microseconds.
done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(format('RESULT %d %d %d %d %d %d\n', summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(95), latency:percentile(99), failed))
end
