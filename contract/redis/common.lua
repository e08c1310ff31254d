-- What the scripts share. A script that begins with lines `-- @include FILE` is those files' texts, in that order, followed by its own.
-- There are several files because a script makes all that it includes anew at each call.
--
-- Every script is called with its keys, in the order of its line `-- KEYS:` (`fresh` stands for ten keys, `fresh:0` to
-- `fresh:9`), and with one argument: MessagePack of a list. The first item of the list is the time in milliseconds since
-- 1970, or false for the server's own; the second is the bell: [channel, origin and queue as MessagePack, origin].
-- Replies are MessagePack too. Ids are 16 bytes, in calls as texts (Redis' reader of MessagePack takes those as they are, and
-- knows no byte strings), in replies as byte strings, as records are. "As MessagePack" is a text, too, which the script need not look into.
--
-- What a queue partition keeps (all under one hash tag; see docs/redis.md):
--   jobs       HASH name → record, which never changes. A job's name is the last 6 bytes of its id, or, if another job or hole has that
--              name already, the whole id: then the job is a twin. Most of what a waiting job takes is the price of separate
--              pieces of memory, so names and records are made to fit small ones.
--   states     HASH id → state, as `encode` writes it. A job without one waits in `fresh` since its push.
--   keys       HASH key → id of the live job that has it
--   fresh:N    LIST of names of priority N, by place: those that wait since their push. A twin waits in `returned` instead.
--   returned   ZSET of those that wait again, in the order of claiming
--   scheduled, running, dead, cancelled   ZSET of ids by time: due, end of lease, finished, finished
--   done       LIST of ids in the order of finishing
--   results, progress, errors             HASH id → MessagePack of the encoded value
--   queue      HASH of settings (capacity, keepDone, keepDead, paused) and marks: place, holes, twins, asleep, asleepBy, room, watched,
--              listed: the queue is in the list of queues, which is to be made sure after the first job or setting (`register`),
--              run: 16 characters that tell by which process of the server fences were last given out, then the floor above which they are,
--              or nothing for 0
--
-- What all queues share, under the hash tag {PREFIX}:
--   queues     HASH name → number of partitions, behind which a space and a token may stand (`unregister`)
--   floor      above which fences of queues that come into being are given out; not there: 0
--
-- A record, numbers big-endian:
--   id's first 10 bytes | shape | place | pushedAt | attempts | key, if WITH_KEY | job
-- shape: one byte, the priority and the flags below. place: 4 bytes, or 6 if WIDE. pushedAt: its last 2 bytes, where it is within
-- 32768 ms of the time in the id's first 6 bytes, as it mostly is; or 6 bytes if APART. attempts, key: MessagePack. job: the text of
-- JSON up to the end if PLAIN, else MessagePack of [encoding, body] or [encoding, body, group, timeout, trace]; encoding 0 json, 1 msgpack, 2 bytes.
--
-- A fresh job that is cancelled leaves its name in the list, since taking it out would cost a walk: a hole. Its state has the flag HOLE
-- until a claim meets the hole; if the job goes before that, a state of letter `h` stays for the hole, under the name.
-- So a name is in the lists once at most, and a job whose state has the flag is no twin.
--
-- The first write of every script but push, configure, record and those of the list of queues removes something. Redis refuses a script at its memory limit only
-- on the first write, and only if that may take memory: so a full server can still be drained, and no script ends half-way.

local SPAN = 281474976710656 -- 2^48: more than any place, and than any time that is kept
local KEYED, HOLE = 1, 2 -- flags of a state
local WITH_KEY, PLAIN, APART, WIDE = 16, 32, 64, 128 -- flags of a record's shape
-- No more fences than this are given out between two looks at the server's `run_id`.
local RAISE = 100000
local RECENT = 5000 -- ms that a mark holds; whoever waits renews it once a second
local NIL = '\192'
local MANY = 4000 -- arguments in one command; Lua's stack ends at 8000

local function clock(given)
  if given then return given end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Which process of the server this is, in 16 characters: after a restart or a failover, another. Where the server does not tell, always the same.
local function server_run()
  local info = redis.pcall('INFO', 'server')
  local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
  return string.sub(run .. '0000000000000000', 1, 16)
end

local function recent(mark, now)
  return mark and math.abs(now - mark) < RECENT
end

-- letter: s scheduled, w waiting, r running, d done, x dead, c cancelled, h hole.
-- due 0: when it was pushed; started, finished 0: never; worker: MessagePack, or nothing; call: of a running one, four bytes that name
-- the call that claimed it.
local function encode(letter, flags, fence, attempt, due, started, finished, worker, call)
  return letter .. struct.pack('>BI6I4I6I6I6', flags, fence, attempt, due, started, finished) .. worker .. (call or '')
end

local function decode(state)
  local letter, flags, fence, attempt, due, started, finished, at = struct.unpack('>c1BI6I4I6I6I6', state)
  return letter, flags, fence, attempt, due, started, finished, string.sub(state, at, letter == 'r' and -5 or -1)
end

local function name_of(id)
  return string.sub(id, 11)
end

local function owns(id, record)
  return string.sub(id, 1, 10) == string.sub(record, 1, 10)
end

local function score(priority, place)
  return (9 - priority) * SPAN + place
end

local function call(command, key, args)
  local count = #args
  for i = 1, count, MANY do
    redis.call(command, key, unpack(args, i, math.min(i + MANY - 1, count)))
  end
end

local function hmget(key, fields)
  local count = #fields
  if count == 0 then return {} end
  if count <= MANY then return redis.call('HMGET', key, unpack(fields)) end
  local values = {}
  for i = 1, count, MANY do
    local some = redis.call('HMGET', key, unpack(fields, i, math.min(i + MANY - 1, count)))
    for j = 1, #some do values[i + j - 1] = some[j] end
  end
  return values
end

local function bin_head(length)
  if length < 256 then return '\196' .. string.char(length) end
  if length < 65536 then return '\197' .. struct.pack('>I2', length) end
  return '\198' .. struct.pack('>I4', length)
end

local function bin(bytes)
  return bin_head(#bytes) .. bytes
end

local function list_of(count)
  return '\221' .. struct.pack('>I4', count)
end

-- Message: [origin, queue, kind, ids one after the other, or nil].
local function ring(bell, kind, ids)
  local named = ids and #ids > 0 and #ids <= 1000
  redis.call('PUBLISH', bell[1], '\148' .. bell[2] .. cmsgpack.pack(kind) .. (named and bin(table.concat(ids)) or NIL))
end

-- Somebody claimed in vain a short while ago, and not only the one who calls: that one rings in its own process.
local function wake(K, bell, now, asleep, asleep_by)
  if not asleep then return end
  redis.call('HDEL', K.queue, 'asleep', 'asleepBy')
  if recent(asleep, now) and asleep_by ~= bell[3] then ring(bell, 'work') end
end

local function woken(K, bell, now)
  local marks = redis.call('HMGET', K.queue, 'asleep', 'asleepBy')
  wake(K, bell, now, marks[1], marks[2])
end

-- Somebody was told that the queue is full.
local function roomy(K, bell, now)
  local mark = redis.call('HGET', K.queue, 'room')
  if not mark then return end
  redis.call('HDEL', K.queue, 'room')
  if recent(mark, now) then ring(bell, 'room') end
end
