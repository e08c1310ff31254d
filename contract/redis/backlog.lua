-- How a queue becomes a grouped one. Its running jobs are counted at once; the next claims and sweeps bring its waiting jobs into the lines
-- of their groups, bit by bit.

-- Jobs that waited before the queue was grouped: the pages up to `backlog` are in lines. @return whether there are more
local function move_backlog(limits)
  local from = limits.hash.backlog
  if not from then return false end
  local lines, groups, count, bytes = {}, {}, 0, 0
  while count < 1000 and bytes < 4194304 do
    local page = redis.call('ZRANGEBYSCORE', K.waiting, '(' .. from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if not page[1] then break end
    for _, entry in ipairs(entries_of(redis.call('HGET', K.pages, page[1]))) do
      local id = string.sub(entry, 2)
      local record = redis.call('HGET', K.jobs, id)
      local list = facts(record)
      local name = list[5] or ''
      lines[#lines + 1], lines[#lines + 2] = '0', line_entry(name, list[3], list[1], id, list[9])
      groups[#groups + 1] = name
      count, bytes = count + 1, bytes + #record
    end
    from = page[2]
  end
  call('ZADD', K.lines, lines)
  call('SADD', K.touched, groups)
  local more = redis.call('ZCOUNT', K.waiting, '(' .. from, '+inf') > 0
  if more then redis.call('HSET', K.limits, 'backlog', from) else redis.call('HDEL', K.limits, 'backlog') end
  limits.hash.backlog = more and from or nil
  return more
end

-- Where the queue is none yet. `limits`: of a queue that is not grouped.
local function make_grouped(limits)
  limits.with_groups()
  redis.call('HSET', K.queue, 'limits', 'groups')
  set_grouped('groups')
  for _, id in ipairs(redis.call('ZRANGE', K.running, 0, -1)) do
    local group = limits.group(facts(redis.call('HGET', K.jobs, id))[5] or '')
    group.runs, group.counted, group.changed = group.runs + 1, true, true
    redis.call('HSET', K.states, id, redis.call('HGET', K.states, id) .. cmsgpack.pack(group.name))
    redis.call('SADD', K.touched, group.name)
  end
  limits.hash.backlog = '-inf'
  if move_backlog(limits) then note_end(NOW) end
end
