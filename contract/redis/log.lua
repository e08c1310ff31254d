-- What scripts share that add lines to the logs of jobs: contract/operations.md, "The log of a job".

local MAX_LINES, MAX_BYTES = 100, 65536

-- given: lines, with a line feed between them; nil or false: none. Lines that the job has already are left out.
local function add_log(id, given)
  if not given then return end
  local field, lines, known = id .. 'l', {}, {}
  for line in string.gmatch((redis.call('HGET', K.progress, field) or '') .. '\n' .. given, '[^\n]+') do
    if not known[line] then lines[#lines + 1], known[line] = line, true end
  end
  local first, bytes = #lines + 1, 0
  while first > 1 and first > #lines - MAX_LINES + 1 do
    bytes = bytes + #lines[first - 1] + 1
    if bytes > MAX_BYTES then break end
    first = first - 1
  end
  redis.call('HSET', K.progress, field, table.concat(lines, '\n', first))
end
