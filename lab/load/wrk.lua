-- wrk … -s wrk.lua URL -- METHOD BODY SEED
local random, format = math.random, string.format
local ID = '[<id>]'

local function id()
  return format('%08x%08x', random(0, 0x7fffffff), random(0, 0x7fffffff))
end

init = function(args)
  wrk.method = args[1]
  if args[2] == '' then return end
  wrk.body = args[2]
  local from, to = wrk.body:find(ID, 1, true)
  if from == nil then return end
  -- All of a request but the id is the same, and wrk.format would put it together anew each time.
  math.randomseed(tonumber(args[3]))
  local before, after = wrk.body:sub(1, from - 1), wrk.body:sub(to + 1)
  local body = before .. id() .. after
  local head = wrk.format(nil, nil, nil, body):sub(1, -#body - 1) .. before
  -- With a function of this name wrk makes each request by it, else it sends the same again and again.
  request = function() return head .. id() .. after end
end

-- What wrk.ts reads. Latencies and duration in microseconds.
done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(format('RESULT %d %d %d %d %d %d\n', summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(95), latency:percentile(99), failed))
  local curve = {}
  for _, share in ipairs({ 10, 25, 50, 75, 90, 95, 97.5, 99, 99.9, 99.99 }) do
    curve[#curve + 1] = format('%g:%d', share, latency:percentile(share))
  end
  io.write('CURVE ' .. table.concat(curve, ' ') .. '\n')
end
