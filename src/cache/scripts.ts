/**
 * The scripts of the cache. All keys of a call have one hash tag. A value of another type than a string, which is none of ours, is
 * overwritten.
 */
import { createHash } from 'node:crypto'
import { VERSION_AT, VERSION_BYTES } from './stored.ts'

export interface Script {
  text: string
  sha: string
  /** How many of the arguments are keys. */
  keys: number
}

function script(keys: number, text: string): Script {
  return { text, keys, sha: createHash('sha1').update(text).digest('hex') }
}

/** The version of the value at a key, empty where there is none; and removal of the pieces of the value that goes. */
const COMMON = `
local function head(key, from, to)
  if redis.call('TYPE', key).ok ~= 'string' then return '' end
  return redis.call('GETRANGE', key, from, to)
end

local function version(key)
  return head(key, ${VERSION_AT}, ${VERSION_AT + VERSION_BYTES - 1})
end

-- The head's layout is in stored.ts.
local function removePieces(key, prefix)
  local first = head(key, 0, 36)
  if #first < 37 or string.sub(first, 1, 2) ~= '\\193\\1' then return end
  local flags = string.byte(first, 11)
  if flags % 16 < 8 then return end
  local at = flags % 4 == 1 and 36 or 30
  local pieces = string.byte(first, at) * 256 + string.byte(first, at + 1)
  local hex = string.gsub(string.sub(first, ${VERSION_AT + 1}, ${VERSION_AT + VERSION_BYTES}), '.', function (c)
    return string.format('%02x', string.byte(c))
  end)
  for piece = 0, pieces - 1 do redis.call('UNLINK', prefix .. hex .. ':' .. piece) end
end
`

/**
 * KEYS: value lock. ARGV: token, lease in ms, version that the caller knows (empty: none), or '*' for any.
 * Answers 0: the lock is ours; -1: there is another value by now; else for how many ms another has the lock.
 */
export const ACQUIRE = script(
  2,
  `${COMMON}
if ARGV[3] ~= '*' and version(KEYS[1]) ~= ARGV[3] then return -1 end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
return math.max(1, redis.call('PTTL', KEYS[2]))`,
)

/** KEYS: lock. ARGV: token, lease in ms. Answers whether it is still ours. */
export const RENEW = script(
  1,
  `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`,
)

/** KEYS: lock. ARGV: token, channel, message. Tells those who wait. */
export const RELEASE = script(
  1,
  `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1`,
)

/**
 * KEYS: value lock. ARGV: token, value, life in ms, prefix of pieces. Answers whether it is stored: not if the lock is another's, or nobody's,
 * since then the value may be of before an invalidation.
 */
export const COMMIT = script(
  2,
  `${COMMON}
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
removePieces(KEYS[1], ARGV[4])
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[2])
return 1`,
)

/** KEYS: value lock. ARGV: value, life in ms, prefix of pieces, channel, message. Whoever loads the key is told that it has lost the lock. */
export const PUT = script(
  2,
  `${COMMON}
removePieces(KEYS[1], ARGV[3])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if redis.call('DEL', KEYS[2]) == 1 then redis.call('PUBLISH', ARGV[4], ARGV[5]) end
return 1`,
)

/**
 * KEYS: value lock. ARGV: prefix of pieces, channel, message, token; an empty one: whoever has the lock. Answers whether there was a value; -1, with nothing
 * removed, if the lock is no longer the token's.
 */
export const DROP = script(
  2,
  `${COMMON}
if ARGV[4] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[4] then return -1 end
removePieces(KEYS[1], ARGV[1])
if redis.call('DEL', KEYS[2]) == 1 then redis.call('PUBLISH', ARGV[2], ARGV[3]) end
return redis.call('DEL', KEYS[1])`,
)

/** KEYS: tag. ARGV: a new marker, life in ms. Answers the tag's marker, which is made if there is none. */
export const MARKER = script(
  1,
  `local marker = redis.call('TYPE', KEYS[1]).ok == 'string' and redis.call('GET', KEYS[1]) or ''
if #marker ~= ${VERSION_BYTES} then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return ARGV[1]
end
-- Not each time: every change is told to every process.
if redis.call('PTTL', KEYS[1]) < ARGV[2] / 2 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return marker`,
)

/** KEYS: structures. ARGV: an id. Answers the list, which is begun with that id if there is none. */
export const TABLE = script(
  1,
  `if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('RPUSH', KEYS[1], ARGV[1]) end
return redis.call('LRANGE', KEYS[1], 0, -1)`,
)

/** KEYS: structures. ARGV: id, how many the caller knows, structures. Answers whether they were appended. */
export const APPEND = script(
  1,
  `if redis.call('LINDEX', KEYS[1], 0) ~= ARGV[1] or redis.call('LLEN', KEYS[1]) - 1 ~= tonumber(ARGV[2]) then return 0 end
for i = 3, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[i]) end
return 1`,
)
