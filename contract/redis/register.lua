-- @include version.lua
-- register: a queue is to be in the list of queues. Its keys are the list's own: {PREFIX}:queues and the others.
-- KEYS: queues floor version
-- In:  name, partitions, stored: 1 where something of the queue is stored already, so that a server without room must not refuse this.
-- Out: [partitions, floor]. partitions: how many the queue has, which whoever registers it first decides. floor: as text, for `push`.
--      Nothing: the data have a newer version than this script, and nothing was registered.
-- Invariant: whoever is about to remove the queue (`unregister`) leaves it in the list then. What is there already is not written: a server
--      without room would refuse that.

if version_of(KEYS[3]) > VERSION then return {} end
local kept = redis.call('HGET', KEYS[1], ARGV[1])
local partitions = kept and string.match(kept, '^%d+') or ARGV[2]
if ARGV[3] == '1' then redis.call('HDEL', KEYS[1], '') end
if kept ~= partitions then
  redis.call('HSET', KEYS[1], ARGV[1], partitions)
  redis.call('SET', KEYS[3], VERSION, 'NX')
end
return { tonumber(partitions), redis.call('GET', KEYS[2]) or '0' }
