/**
 * The steps in Redis, each a Lua script. A taken job is in none of BullMQ's lists: its id is in the hash `millpond-move` of its queue, with
 * the list that it came from and its score there, and its own hash stays until the target has it. So BullMQ's workers cannot start it, and
 * the next move finds it if this one is killed. The mark there is that of the batch which took it last. Only that one may put it back.
 */

/** How the hash holds a job: `wait 0 MARK`, `delayed 7215… MARK`. */
const TAKEN = 'millpond-move'

/** Fields of jobs that belong to a flow or a job scheduler. BullMQ makes something of their ends, so they stay. */
const COMMON = `
local base = KEYS[1]
local taken = base .. '${TAKEN}'
local function bound(id)
  local job = base .. id
  if redis.call('HEXISTS', job, 'parentKey') == 1 or redis.call('HEXISTS', job, 'rjk') == 1 then return true end
  return redis.call('EXISTS', job .. ':dependencies', job .. ':processed') > 0
end
local out, bytes = {}, 0
local function add(id, from, mark)
  redis.call('HSET', taken, id, from .. ' ' .. mark)
  local fields = redis.call('HGETALL', base .. id)
  for i = 2, #fields, 2 do bytes = bytes + #fields[i] end
  out[#out + 1] = { id, from, fields }
end
`

/**
 * KEYS: the queue's keys up to the last colon. ARGV: mark, list, how many bound jobs were passed over at its head, limit, most bytes.
 * Out: how many were passed over now; per job its id, where it was, and its fields. Takes those that would be next.
 */
export const TAKE = `${COMMON}
local mark, name, skip, limit, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local key = base .. name
local is_list = name == 'wait' or name == 'paused'
local ids = is_list and redis.call('LRANGE', key, -(skip + limit), -(skip + 1)) or redis.call('ZRANGE', key, skip, skip + limit - 1)
local passed = 0
for n = 1, #ids do
  if bytes > most then break end
  local id = ids[is_list and #ids + 1 - n or n]
  if bound(id) or redis.call('EXISTS', base .. id) == 0 then passed = passed + 1
  else
    local score = is_list and '0' or redis.call('ZSCORE', key, id)
    if is_list then redis.call('LREM', key, -1, id) else redis.call('ZREM', key, id) end
    add(id, name .. ' ' .. score, mark)
  end
end
return { passed, out }
`

/** What a move that ended has left, or another one has taken. ARGV: mark, ids. Out: as TAKE. */
export const RESUME = `${COMMON}
for n = 2, #ARGV do
  local from = string.match(redis.call('HGET', taken, ARGV[n]) or '', '^%S+ %S+')
  if from then add(ARGV[n], from, ARGV[1]) end
end
return { 0, out }
`

/** ARGV: ids, which the target has. */
export const REMOVE = `${COMMON}
for _, id in ipairs(ARGV) do
  if redis.call('HDEL', taken, id) == 1 then
    local job = base .. id
    local once = redis.call('HGET', job, 'deid')
    if once and redis.call('GET', base .. 'de:' .. once) == id then redis.call('DEL', base .. 'de:' .. once, base .. 'dn:' .. once) end
    redis.call('DEL', job, job .. ':logs', job .. ':lock', job .. ':failed', job .. ':unsuccessful')
  end
end
`

/** ARGV: mark, ids, the first to start last. What has another mark by now stays. */
export const PUT_BACK = `${COMMON}
for n = 2, #ARGV do
  local id = ARGV[n]
  local name, score, mark = string.match(redis.call('HGET', taken, id) or '', '^(%S+) (%S+) (%S+)$')
  if mark == ARGV[1] then
    redis.call('HDEL', taken, id)
    if name == 'wait' or name == 'paused' then redis.call('RPUSH', base .. name, id) else redis.call('ZADD', base .. name, score, id) end
    -- BullMQ's workers wait for this.
    if name == 'delayed' then redis.call('ZADD', base .. 'marker', tonumber(score) / 0x1000, '1')
    elseif name ~= 'failed' and redis.call('HEXISTS', base .. 'meta', 'paused') == 0 then redis.call('ZADD', base .. 'marker', 0, '0') end
  end
end
`
export { TAKEN }
