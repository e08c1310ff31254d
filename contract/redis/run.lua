-- Which run of the server this is.

-- 32 characters that change with a restart and with a failover: the first halves of the process's run_id and of its replication id, which a
-- server gets anew when it becomes the master. Where the server does not tell, always the same.
local function server_run()
  local function told(section, name)
    local info = redis.pcall('INFO', section)
    local value = type(info) == 'string' and string.match(info, name .. ':(%x+)') or ''
    return string.sub(value .. '0000000000000000', 1, 16)
  end
  return told('server', 'run_id') .. told('replication', 'master_replid')
end

-- Above which fences are given out where nothing is known of earlier ones: the time in tenths of a millisecond, since no job is claimed
-- more often than that.
local function fresh_floor()
  local time = redis.call('TIME')
  return time[1] * 10000 + math.floor(time[2] / 100)
end
