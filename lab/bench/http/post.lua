-- For wrk: every request is the same POST.
wrk.method = 'POST'
wrk.headers['content-type'] = 'application/json'
wrk.body = '{"to":"someone@example.org"}'

-- What load.ts reads. Latencies in microseconds.
done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('RESULT %d %d %d %d %d\n', summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), failed))
end
