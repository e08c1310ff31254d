-- What the scripts share. A script whose first line is `-- @include common.lua` is this text followed by its own.
--
-- Every script is called with its keys, in the order of its line `-- KEYS:` (`fresh` stands for ten keys, `fresh:0` to
-- `fresh:9`), and with one argument: MessagePack of a list. The first item of the list is the time in milliseconds since
-- 1970, or false for the server's own; the second is the bell: [channel, origin and queue as MessagePack, origin].
-- Replies are MessagePack too. Ids are 16 bytes, in calls as texts (Redis' reader of MessagePack takes those as they are, and
-- knows no byte strings), in replies as byte strings. "As MessagePack" is a text, too, which the script need not look into.
--
-- What a queue partition keeps (all under one hash tag; see docs/redis.md):
--   jobs       HASH id → record, which never changes: MessagePack of [place, pushedAt, priority, attempts, job], or with a
--              key [place, pushedAt, priority, attempts, key, job]. pushedAt: six bytes, big-endian. `job` is the producer's: a
--              text of JSON, or [encoding, body], or [encoding, body, group, timeout, trace]; encoding 0 json, 1 msgpack, 2 bytes.
--   states     HASH id → state, as `encode` writes it. A job without one waits in `fresh` since its push.
--   keys       HASH key → id of the live job that has it
--   fresh:N    LIST of ids of priority N, by place: those that wait since their push
--   returned   ZSET of those that wait again, in the order of claiming
--   scheduled, running, dead, cancelled   ZSET of ids by time: due, end of lease, finished, finished
--   done       LIST of ids in the order of finishing
--   results, progress, errors             HASH id → MessagePack of the encoded value
--   queue      HASH of settings (capacity, keepDone, keepDead, paused) and marks: place, holes, asleep, asleepBy, room, watched
--
-- A fresh job that is cancelled leaves its id in the list, since taking it out would cost a walk: a hole. Its state has
-- the flag HOLE until a claim meets the hole; if the job goes before that, a state of letter `h` stays for the hole.
--
-- The first write of every script but push, configure and record removes something. Redis refuses a script at its memory limit only
-- on the first write, and only if that may take memory: so a full server can still be drained, and no script ends half-way.

local SPAN = 281474976710656 -- 2^48: more than any place, and than any time that is kept
local KEYED, HOLE = 1, 2
local RECENT = 5000 -- ms that a mark holds; whoever waits renews it once a second
local NIL = '\192'
local MANY = 4000 -- arguments in one command; Lua's stack ends at 8000

local function clock(given)
  if given then return given end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function recent(mark, now)
  return mark and math.abs(now - mark) < RECENT
end

-- letter: s scheduled, w waiting, r running, d done, x dead, c cancelled, h hole.
-- due 0: when it was pushed; started, finished 0: never; worker: MessagePack, or nothing; call: of a running one, four bytes that name
-- the call that claimed it.
local function encode(letter, flags, fence, attempt, due, started, finished, worker, call)
  return letter .. struct.pack('>BI4I4I6I6I6', flags, fence, attempt, due, started, finished) .. worker .. (call or '')
end

local function decode(state)
  local letter, flags, fence, attempt, due, started, finished, at = struct.unpack('>c1BI4I4I6I6I6', state)
  return letter, flags, fence, attempt, due, started, finished, string.sub(state, at, letter == 'r' and -5 or -1)
end

-- place, pushedAt, priority, attempts, key or nil
local function facts(record)
  local keyed = string.byte(record) == 0x96
  local _, place, pushed, priority, attempts, key = cmsgpack.unpack_limit(record, keyed and 5 or 4, 1)
  return place, (struct.unpack('>I6', pushed)), priority, attempts, key
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

local function bin(bytes)
  local length = #bytes
  if length < 256 then return '\196' .. string.char(length) .. bytes end
  if length < 65536 then return '\197' .. struct.pack('>I2', length) .. bytes end
  return '\198' .. struct.pack('>I4', length) .. bytes
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

-- Somebody looked for a job that is not finished.
local function finished_bell(K, bell, now, ids)
  if #ids > 0 and recent(redis.call('HGET', K.queue, 'watched'), now) then ring(bell, 'finished', ids) end
end

local function keep(K, letter)
  if letter == 'd' then return tonumber(redis.call('HGET', K.queue, 'keepDone') or 3600000) end
  return tonumber(redis.call('HGET', K.queue, 'keepDead') or 604800000)
end

-- Jobs that are kept no longer, with their states (false: none).
local function forget(K, ids, states)
  if #ids == 0 then return end
  local gone, holes = {}, {}
  for i = 1, #ids do
    if states[i] and string.byte(states[i], 2) >= HOLE then
      holes[#holes + 1] = ids[i]
      holes[#holes + 1] = encode('h', HOLE, 0, 0, 0, 0, 0, '')
    else
      gone[#gone + 1] = ids[i]
    end
  end
  call('HDEL', K.jobs, ids)
  call('HDEL', K.states, gone)
  call('HSET', K.states, holes)
  for _, key in ipairs({ K.results, K.progress, K.errors }) do
    if redis.call('EXISTS', key) == 1 then call('HDEL', key, ids) end
  end
end

-- A live job that has a key gives it up.
local function unkey(K, id, flags, record)
  if flags % 2 == 0 then return end
  local _, _, _, _, key = facts(record or redis.call('HGET', K.jobs, id))
  redis.call('HDEL', K.keys, key)
end

-- All there is to know: [id, letter, attempt, due, started, finished (of a running one: when its lease ends), worker, progress,
-- error, result, record].
local function described(K, id, record, state, extras)
  local letter, attempt, due, started, finished, worker = 'w', 0, 0, 0, 0, ''
  if state then
    local _
    letter, _, _, attempt, due, started, finished, worker = decode(state)
    if letter == 'r' then finished = tonumber(redis.call('ZSCORE', K.running, id)) end
  end
  local function extra(key)
    return extras[key] and redis.call('HGET', key, id) or NIL
  end
  return table.concat({
    '\155', bin(id), cmsgpack.pack(letter), cmsgpack.pack(attempt), cmsgpack.pack(due), cmsgpack.pack(started),
    cmsgpack.pack(finished), worker == '' and NIL or worker, extra(K.progress), extra(K.errors), extra(K.results), record,
  })
end

local function extras_of(K)
  local extras = {}
  for _, key in ipairs({ K.results, K.progress, K.errors }) do
    extras[key] = redis.call('EXISTS', key) == 1
  end
  return extras
end
