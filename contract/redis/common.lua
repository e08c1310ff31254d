-- What the scripts share. A script that begins with lines `-- @include FILE` is those files' texts, in that order, followed by its own.
--
-- Every script is called with its keys, in the order of its line `-- KEYS:`, and with these arguments:
--   ARGV[1]   head: MessagePack of a list. It begins [now, channel, origin, queue, part]; what follows is told under `Head:`.
--             now: milliseconds since 1970, or nil for the server's own time. channel: where bells are rung. origin: names the process.
--             part: names the queue's partition among all under the hash tag, as `emails` or `emails#1`.
--   ARGV[2]   `1`: the same call may have taken effect before, and its answer was lost; else `0`.
--   ARGV[3…]  items, as told under `In:`. Ids are 16 bytes, numbers decimal text.
-- Answers are lists of Redis: whole numbers and byte strings.
--
-- An encoded value (data, result, progress) is one digit for its encoding, 0 json, 1 msgpack, 2 bytes, and its body.
--
-- What a queue's partition keeps; all keys of a script have one hash tag (README.md):
--   jobs       HASH id → record, which only `update` changes: MessagePack of [place, pushedAt, priority, attempts, group, timeout, key,
--              trace, cost, placedAt, remember], then the encoded data. Absent values are false; those at the end are left out. So the
--              group is read without the data. placedAt: when a restored job got its place; absent: pushedAt. remember: ms after
--              the end for which the key is remembered, below 0: after the push.
--   states     HASH id → MessagePack of [state, fence, attempt, due, started, finished, worker]. Of a running job of a grouped queue, its
--              group follows as MessagePack (`` where it has none), so that its end need not read the record. due: 0 means when it was
--              pushed; started and finished: 0 means never. Of a follower, due is
--              NEVER, and behind the worker stands from when it may start. A job without a state waits since its push.
--   pages      HASH page → up to 90 waiting jobs, by place: each its place within the page (one byte) and its id. A page is PRIORITY:NUMBER
--              and has the places from 90 × NUMBER on. Whoever stops waiting leaves its page, and an empty page goes.
--   waiting    ZSET of pages, in the order of claiming
--   keys       HASH key → id of the live job that has it; or of the one that is remembered, and until when; a NUL and the key → id of the
--              job's follower
--   remembered ZSET of keys by until when they are remembered; or longer, or by a live job: `keys` has it
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
--   scheduled, running, done, dead, cancelled   ZSET of ids by time: due, end of lease, finished
--   awaiting   ZSET of blocked jobs by place
--   parents    HASH id of a job → its kind: `c` or `r`: its onDead; the id of the graph that it was pushed with, or 16 NULs; how many of
--              its
--              links are open (three bytes, big-endian); the ids of its parents, those with an open link first. Where a parent ended badly,
--              while the graph was not decided, the kind is the digit for that, as in `ended`, and that parent comes first. Of a follower
--              whose graph is not decided, the kind is `f`.
--   children   HASH id of a job → how many further pages its links have (three bytes), and its last links: each the child, and the child's
--              part with its length before it (one byte). The id and a number from 0 (three bytes) → the links before those
--   ended      ZSET of parents that have ended, whose children are still to be told; or single links. Its score is 4 times a number of
--              its own, and how it ended: 0 done, 1 dead, 2 cancelled, 3 removed
--   graphs     ZSET of graphs with jobs here that are not decided, by when they were stored
--   staged     HASH graph → `h`: it is not decided, or `r`: its jobs are being started; the part that decides, with its length before it
--              (one byte); the ids of the jobs that are left
--   results, progress   HASH id → encoded value. In `progress` also, of jobs with a log, the id and `l` → its lines, with a line feed
--              between them: a hash of its own would be a key of every call
--   errors     HASH id → MessagePack of [code, name, message, stack]
--   claims     HASH worker → the last call by which it got jobs: MessagePack of [call, now], then the ids
--   queue      HASH of settings, as `configure` has them; code, operator: JSON of what each has given of them; places: how many places were
--              given; `endings`: how many numbers `ended` has given out; `settled:` and an id: where the links of that parent begin whose
--              children are still to be told; `waiting`: how many jobs wait; `total:pushed` and others: how often that happened; measured:
--              see `record`; limits: not there: it has and had none; `queue`: see the hash `limits`; `groups`: it is grouped as well; turn,
--              ownTurn: see `turn_of`; marks: asleep, asleepBy, room, watched; listed: the queue is in the list of queues, with so many
--              partitions, which is to be made sure after the first job or setting
--              (`register`); run: 32 characters that tell which server gave out the last fences, then the floor above which they are
-- and for all partitions of the hash tag together:
--   @due       ZSET of parts by when their next scheduled job is due; none for a part without one
--   @fired     ZSET of the ids of jobs that schedules have pushed, by when: see fire.lua
--   @ends      ZSET of parts by when a lease may run out, or a finished job or a group may have been kept long enough: that time or an
--              earlier one
-- What all queues share, under the hash tag {PREFIX}:
--   queues     HASH name → number of partitions, behind which a space and a token may stand (`unregister`)
--   floor      above which fences of queues that come into being are given out; not there: 0
--   version    of the form of all data, as version.lua has it
--   workers, claimed   see heartbeat.lua
--   schedules, scheduleNames, nextFirings, firings   see scheduled.lua
--   awaited    see awaited.lua
-- Of a graph whose jobs lie in several partitions, `graph:ID` of its first job's partition holds what was decided: see decide.lua.
--
-- The first write of every script but push, restore, record, those on schedules and those of the list of queues removes something. Redis
-- refuses a script at its memory limit only on the first write, and only if that may take memory: so a full server can still be drained,
-- and no script ends half-way.

local SPAN = 281474976710656 -- 2^48: more than any place, and than any time that is kept
local RECENT = 5000 -- ms that a mark holds; whoever waits renews it once a second
local NEVER = SPAN - 1 -- due of a follower: no time brings it about
local SOON = 1000 -- ms: a job that is due sooner rings for work when it is scheduled, and a claim then tells when
local MANY = 4000 -- arguments in one command; Lua's stack ends at 8000
-- Settings that were never set. A backoff is [base, factor, max, jitter].
local DEFAULT = { attempts = 10, lease = 30000, keepDone = 3600000, keepDead = 604800000, backoff = { 1000, 2, 3600000, 0.5 } }
local NEW_STATE = { 'waiting', 0, 0, 0, 0, 0, false } -- of a job that waits since its push
local MEET = false -- meet.lua sets it
local GROUPED = false -- a script sets it where the queue is grouped: then jobs are in `lines` as well

local HEAD = cmsgpack.unpack(ARGV[1])
local CHANNEL, ORIGIN, QUEUE, PART = HEAD[2], HEAD[3], HEAD[4], HEAD[5]
local AGAIN = ARGV[2] == '1'

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local NOW = HEAD[1] or clock()

-- The script's keys by their names.
local function keys_of(names)
  local keys, i = {}, 0
  for name in string.gmatch(names, '%S+') do
    i = i + 1
    keys[name] = KEYS[i]
  end
  return keys
end

local function recent(mark)
  return mark and math.abs(NOW - mark) < RECENT
end

local function call(command, key, args)
  local count = #args
  for i = 1, count, MANY do
    redis.call(command, key, unpack(args, i, math.min(i + MANY - 1, count)))
  end
end

local function hmget(key, fields)
  if #fields == 0 then return {} end
  return redis.call('HMGET', key, unpack(fields))
end

-- A first write that takes no memory.
local function may_write(K)
  redis.call('HDEL', K.queue, '')
end

-- The sorted set of the jobs in a state. `blocked` is of groups.
local function set_of(K, state) return K[state == 'blocked' and 'awaiting' or state] end

-- So often something happened to jobs of the queue.
local function count_total(K, name, count)
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

-- There is work. Rings if somebody claimed in vain a short while ago, and not only the caller, who rings in its own process, except where
-- `unasked`: a slot of a queue with limits is free.
local function wake(K, unasked)
  local marks = redis.call('HMGET', K.queue, 'asleep', 'asleepBy')
  if not marks[1] then return end
  redis.call('HDEL', K.queue, 'asleep', 'asleepBy')
  if recent(marks[1]) and (unasked or marks[2] ~= ORIGIN) then ring('work', nil, unasked and '') end
end

-- There is room. Rings if somebody was told that the queue is full.
local function roomy(K)
  local mark = redis.call('HGET', K.queue, 'room')
  if not mark then return end
  redis.call('HDEL', K.queue, 'room')
  if recent(mark) then ring('room') end
end

-- The time at which the next scheduled job is due, for the sweeps; @return it, or nil
local function note_due(K)
  local head = redis.call('ZRANGE', K.scheduled, 0, 0, 'WITHSCORES')[2]
  if head and tonumber(head) >= NEVER then head = nil end
  if head then redis.call('ZADD', K['@due'], head, PART) else redis.call('ZREM', K['@due'], PART) end
  return tonumber(head)
end

-- A lease may run out, or a finished job or a group have been kept long enough, at this time.
local function note_end(K, time)
  redis.call('ZADD', K['@ends'], 'LT', text(time), PART)
end
