-- For wrk: an empty POST. Latencies in microseconds; what load.ts reads.
wrk.method = 'POST'

done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('RESULT %d %d %d %d %d\n', summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), failed))
end
