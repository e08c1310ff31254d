-- What the scripts share. A script that begins with lines `-- @include FILE` is those files' texts, in that order, followed by its own.
--
-- Every script is called with one key, `{PREFIX}:`, with which all keys of the pond begin, and with these arguments:
--   ARGV[1]   head: MessagePack of a list. It begins [now, channel, origin, queue]; the line `Head:` of a script says what follows.
--             now: milliseconds since 1970, or nil for the server's own time. channel: where bells are published. origin: names the
--             process. queue: the name of a queue, or nil where the script finds the queues by the jobs.
--   ARGV[2]   `1`: the same call may have taken effect before, and its answer was lost; else `0`.
--   ARGV[3…]  items, as the line `In:` says. Ids are 16 bytes, numbers decimal text.
-- Answers are lists of Redis: whole numbers, byte strings, lists.
--
-- An encoded value (data, result, progress) is one digit for its encoding, 0 json, 1 msgpack, 2 bytes, and its body.
--
-- Keys of the pond, `{PREFIX}:NAME`:
--   jobs       HASH id → record: the length of the queue's name (one byte), the name, MessagePack of [place, pushedAt, priority, attempts,
--              group, timeout, key, trace, cost, placedAt, remember], then the encoded data. Absent values are false; those at the end are
--              left out. placedAt: when a restored job got its place; absent: pushedAt. remember: ms after the end for which the key is
--              remembered, below 0: after the push. Only `update` changes a record.
--   states     HASH id → MessagePack of [state, fence, attempt, due, started, finished, worker]. Of a running job of a grouped queue, its
--              group follows as MessagePack (`` where it has none), so that its end need not read the record. due: 0 means when it was
--              pushed; started and finished: 0 means never. Of a follower, due is NEVER, and behind the worker stands from when it may
--              start. A job without a state waits since its push.
--   results, progress   HASH id → encoded value. `progress` also has, of jobs with a log, the id and `l` → its lines, with a line feed
--              between them
--   errors     HASH id → MessagePack of [code, name, message, stack]
--   links, waits, settling   the graph: see graph.lua
--   journals   HASH id of a job that has a journal, or was parked → MessagePack of [entries, signals, bytes, last]: how many entries it
--              has, and how many of them are signals; how many bytes names, metas and bodies have; the number of the last one that came
--   journal:ID ZSET of the names of a job's entries by their numbers. ID: the job's, as text
--   entries:ID HASH name → what the entry holds: the length of the meta (four bytes, big-endian), the meta, then the encoded body, or `-`
--              where there is none
--   parked     HASH id of a parked job → the reason of its last park
--   queues     SET of the names of the queues
--   due        ZSET of queues by when their next scheduled job is due; none for a queue without one
--   ends       ZSET of queues by when a lease may run out, or a finished job or a group may have been kept long enough: that time or an
--              earlier one
--   floor      above which fences of queues that come into being are given out; not there: no queue was removed
--   version    of the form of all data, as version.lua has it
--   workers, claimed   see heartbeat.lua
--   schedules, scheduleNames, nextFirings, removedSchedules   see scheduled.lua
-- Keys of a queue, `{PREFIX}:QUEUE:NAME`:
--   pages      HASH page → up to 90 waiting jobs, by place: each its place within the page (one byte) and its id. A page is PRIORITY:NUMBER
--              and has the places from 90 × NUMBER on. Jobs that stop waiting leave their page, and an empty page goes.
--   waiting    ZSET of pages, in the order of claiming
--   keys       HASH key → id of the live job that has it; or of the one that is remembered, and until when; a NUL and the key → id of the
--              job's follower
--   remembered ZSET of keys by until when they are remembered; or longer, or by a live job: `keys` has it
--   scheduled, running, done, dead, cancelled   ZSET of ids by time: due, end of lease, finished
--   awaiting   ZSET of blocked jobs by place
--   kept       ZSET of done jobs that were kept long enough and have a live child, by when a sweep looks whether they still have one. They
--              are in `done` no more
--   keptFrom   HASH id of such a job → id of the child at which that look begins
--   claims     HASH worker → the last call by which it got jobs: MessagePack of [call, now], then the ids
--   histograms see record.lua
--   queue      HASH of settings, as `configure` has them; code, operator: JSON of what each has given of them; places: how many places were
--              given; `waiting`: how many jobs wait; `total:pushed` and others: how often that happened; measured: see `record`; limits:
--              not there: the queue has and had none; `queue`: see the hash `limits`; `groups`: it is grouped as well; marks: asleep,
--              asleepBy, room, watched; listed: 1: the queue is in `queues`; steps: 1: a job of the queue is, or
--              was, in `journals`; run: 32 characters that name the server's run that gave out the last fences, then the floor above which
--              they are
--   limits     HASH of limits: running, groupRunning: numbers; rate, groupRate: MessagePack of [count, per, burst]; full: of the queue's
--              rate, in microseconds; fullCost: of its last start; pausedUntil, pauseLength; claimed: when a claim last looked at groups;
--              virtual: MessagePack of the queue's virtual time per priority, from 0 to 9; backlog: the score of the page up to which the
--              jobs that waited before the queue was grouped are in `lines`; relook: where the walk of claims through all groups goes on,
--              after their settings have changed, or the clock was set back
-- and of a grouped queue:
--   lines      ZSET of waiting jobs, all of score 0: the group, a NUL, 9 minus the priority (one byte), the place (six), the id, the cost
--              (four), numbers big-endian. So each group has its jobs together, in the order of claiming. The jobs are in `pages` as well.
--   slots      HASH group → how many of its jobs run
--   groups     HASH group → MessagePack of [at, place, virtual, own, full, fullCost, pausedUntil, pauseLength]. at: where the last claim
--              that looked at the group put it: the priority of its ticket in `tickets`; -1: `held`; -2: `blocked`; -3: none of them.
--              place: of the job that the ticket is for, else 0. virtual: list of its virtual times per priority, from 0. own: its own
--              limits [running, rate, weight], or false. full, fullCost: of its rate, as of the queue's. Behind `virtual` or `own` the list
--              ends where all that follows would be the default: false, 0, 1, 0, 0.
--   names      ZSET of the groups in `groups`, all of score 0
--   touched    SET of groups to which something happened that may change where they stand; the next claim looks at them
--   tickets    ZSET, all of score 0: 9 minus the priority (one byte), the virtual time (double, big-endian), the place (six bytes), the
--              group
--   held       ZSET of groups by the time until which their rate or a pause holds them
--   blocked    SET of groups of which as many jobs run as may, and others wait: an ending adds its group to `touched` if that is here
--   unused     ZSET of groups that had no waiting job at some claim, by when a sweep looks whether to forget them
--
-- The first write of every script but push, restore, record and those on schedules removes something. Redis refuses a script at its memory
-- limit only on the first write, and only if that may take memory: so a full server can still be drained, and no script ends half-way.

local SPAN = 281474976710656 -- 2^48: more than any place, and than any time that is kept
local RECENT = 5000 -- ms that a mark holds; a process that waits renews it once a second
local NEVER = SPAN - 1 -- due of a follower: no time brings it about
local SOON = 1000 -- ms: a job that is due sooner rings for work when it is scheduled, and a claim then tells when
local MANY = 4000 -- arguments in one command; Lua's stack ends at 8000
-- Settings that were never set. A backoff is [base, factor, max, jitter].
local DEFAULT = { attempts = 10, lease = 30000, keepDone = 3600000, keepDead = 604800000, backoff = { 1000, 2, 3600000, 0.5 } }
local NEW_STATE = { 'waiting', 0, 0, 0, 0, 0, false } -- of a job that waits since its push

local PREFIX = KEYS[1]
local HEAD = cmsgpack.unpack(ARGV[1])
local CHANNEL, ORIGIN = HEAD[2], HEAD[3]
local AGAIN = ARGV[2] == '1'

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local NOW = HEAD[1] or clock()

-- The queue that the script is at: its name, its keys and those of the pond by name, whether it is grouped, and what this call has done in
-- it and not written yet (`flush` of endings.lua).
local QUEUE, K, GROUPED, Q
local visited, order = {}, {}

local POND = {}
for name in string.gmatch(
  'jobs states results progress errors links waits settling journals parked queues due ends floor version workers claimed '
    .. 'schedules scheduleNames nextFirings removedSchedules', '%S+') do POND[name] = PREFIX .. name end

local function keys_of(queue)
  local start = PREFIX .. queue .. ':'
  return setmetatable({}, {
    __index = function(keys, name)
      local key = POND[name] or start .. name
      keys[name] = key
      return key
    end,
  })
end

-- Goes to a queue.
local function at(name)
  if name == QUEUE then return end
  if not visited[name] then
    visited[name] = { name = name, keys = keys_of(name), totals = {} }
    order[#order + 1] = visited[name]
  end
  Q, QUEUE = visited[name], name
  K, GROUPED = Q.keys, Q.grouped
end

local function set_grouped(limits)
  Q.limits, Q.grouped = limits, limits == 'groups'
  GROUPED = Q.grouped
end

if type(HEAD[4]) == 'string' then at(HEAD[4]) else K = POND end

local function recent(mark)
  return mark and math.abs(NOW - mark) < RECENT
end

local function call(command, key, args)
  local count = #args
  for i = 1, count, MANY do
    redis.call(command, key, unpack(args, i, math.min(i + MANY - 1, count)))
  end
end

-- @return the values of the fields, in their order
local function hmget(key, fields)
  local count = #fields
  if count == 0 then return {} end
  if count <= MANY then return redis.call('HMGET', key, unpack(fields)) end
  local values = {}
  for i = 1, count, MANY do
    for _, value in ipairs(redis.call('HMGET', key, unpack(fields, i, math.min(i + MANY - 1, count)))) do
      values[#values + 1] = value
    end
  end
  return values
end

-- A first write that takes no memory.
local function may_write()
  redis.call('HDEL', POND.errors, '')
end

-- The sorted set of the jobs in a state. `blocked` is of groups.
local function set_of(state) return K[state == 'blocked' and 'awaiting' or state] end

-- So often something happened to jobs of the queue.
local function count_total(name, count)
  if count > 0 then redis.call('HINCRBY', K.queue, 'total:' .. name, count) end
end

-- As text that loses nothing: Redis would write a large number as 1.7e+12.
local function text(number)
  return string.format('%.17g', number)
end

-- A bell: MessagePack of [origin, queue, kind], then the ids. The process that has this origin does not hear it.
local function ring(kind, ids, origin)
  local named = ids and #ids <= 1000 and table.concat(ids) or ''
  redis.call('PUBLISH', CHANNEL, cmsgpack.pack({ origin or ORIGIN, QUEUE, kind }) .. named)
end

-- There is work. Rings if a claim found none a short while ago, and not only the caller's, which rings in its own process, except where
-- `unasked`: a slot of a queue with limits is free, or a job of another queue has ended.
local function wake(unasked)
  local marks = redis.call('HMGET', K.queue, 'asleep', 'asleepBy')
  if not marks[1] then return end
  redis.call('HDEL', K.queue, 'asleep', 'asleepBy')
  if recent(marks[1]) and (unasked or marks[2] ~= ORIGIN) then ring('work', nil, unasked and '') end
end

-- There is room. Rings if a push found the queue full.
local function roomy()
  local mark = redis.call('HGET', K.queue, 'room')
  if not mark then return end
  redis.call('HDEL', K.queue, 'room')
  if recent(mark) then ring('room') end
end

-- The time at which the next scheduled job is due, for the sweeps; @return it, or nil
local function note_due()
  local head = redis.call('ZRANGE', K.scheduled, 0, 0, 'WITHSCORES')[2]
  if head and tonumber(head) >= NEVER then head = nil end
  if head then redis.call('ZADD', K.due, head, QUEUE) else redis.call('ZREM', K.due, QUEUE) end
  return tonumber(head)
end

-- A lease may run out, or a finished job or a group have been kept long enough, at this time.
local function note_end(time)
  redis.call('ZADD', K.ends, 'LT', text(time), QUEUE)
end
