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

-- Of a partition that gives out no fences yet. Noted with the first job, so that a claim that is lost cannot have been the one to note it.
-- Of a server that was emptied, or another one at the same address, fences do not begin anew.
local function new_run(K, floor)
  redis.call('HSET', K.queue, 'run', server_run() .. text(math.max(floor or 0, fresh_floor())))
  redis.call('PERSIST', K.queue)
end
