/** What can be wrong with a Redis server: see `../doctor.ts`. */
import { safeText } from '../../values/errors/safe-error.ts'
import {
  clockFinding,
  countFindings,
  type Finding,
  leaseFinding,
  looked,
  notCounted,
  type SchemaState,
  STUCK,
} from '../examination.ts'
import { keepProcessAlive } from '../keep-process-alive.ts'
import { newClient } from '../redis-client/client.ts'
import { chunks } from './chunks.ts'
import { Calls } from './connection/calls.ts'
import { evicting, fieldOf, isTooOld, mastersOf } from './connection/server.ts'
import { type Settings, storeSettings } from './settings.ts'
import { dataVersion } from './version.ts'
import { numberIn } from './wire.ts'

/** Of `maxmemory`, from which on pushes will soon be refused. */
const NEARLY_FULL = 0.85
/** Resident memory ÷ used memory, and bytes, from which on it is worth telling. */
const FRAGMENTED = { ratio: 2, bytes: 256 * 1024 * 1024 }

interface Server {
  calls: Calls
  settings: Settings
  /** `INFO` of every master. */
  infos: readonly string[]
}

/** @throws StoreUnavailable, InvalidOption, DriverMissing */
export async function examine(url: string): Promise<Finding[]> {
  return withServer(url, async (server) => {
    const check = (name: string, look: () => Finding[] | Promise<Finding[]>) => looked(name, look, safeText)
    const all = await Promise.all([
      check('version', () => versions(server)),
      check('durability', () => durability(server)),
      check('memory', () => memory(server)),
      check('replicas', () => replicas(server)),
      check('leases', () => leases(server)),
      check('counts', () => counts(server)),
      check('clock', () => clock(server)),
      check('rights', () => rights(server)),
    ])
    // Last: the client connects anew after some refusals, and calls of the other checks would fail.
    return [...all.flat(), ...(await check('writes', () => writes(server)))]
  })
}

export async function schemaState(url: string): Promise<SchemaState> {
  return withServer(url, async (server) => {
    const { found, known } = await dataVersion(server.calls)
    // The first queue that is made writes it.
    return { found, newest: known, isCurrent: found === known }
  })
}

function withServer<T>(url: string, use: (server: Server) => Promise<T>): Promise<T> {
  // Its own commands, unlike those of `Calls`, have no deadline that would do so.
  return keepProcessAlive(connected(url, use))
}

async function connected<T>(url: string, use: (server: Server) => Promise<T>): Promise<T> {
  const settings = storeSettings(url, {})
  const client = await newClient(settings)
  try {
    const calls = new Calls(client, { ...settings, wait: 0 })
    await calls.connected()
    const infos = await Promise.all(mastersOf(client).map((node) => node.info()))
    return await use({ calls, settings, infos })
  } finally {
    client.disconnect()
  }
}

async function versions(server: Server): Promise<Finding[]> {
  const versions = [...new Set(server.infos.map((info) => fieldOf(info, 'redis_version') ?? 'unknown'))]
  const { found, known } = await dataVersion(server.calls)
  const text = `Redis ${versions.join(', ')}, data of version ${found}`
  if (versions.some(isTooOld)) {
    return [{ check: 'version', level: 'problem', text, action: 'use Redis 6.2 or later, or Valkey' }]
  }
  if (found !== known) {
    const action = found > known ? 'upgrade this Millpond' : 'use another prefix: this Millpond cannot read older data'
    return [{ check: 'version', level: 'problem', text: `${text}; this Millpond knows ${known}`, action }]
  }
  return [{ check: 'version', level: 'ok', text }]
}

/** By a write that changes nothing: the removal of a key that is not there. */
async function writes({ infos, calls, settings }: Server): Promise<Finding[]> {
  if (infos.some((info) => fieldOf(info, 'role') === 'slave')) {
    const text = 'the server is a replica: it takes no job'
    return [{ check: 'writes', level: 'problem', text, action: 'use the URL of the master, or redis+sentinel://' }]
  }
  try {
    await calls.command('unlink', `{${settings.prefix}}:doctor`)
    return [{ check: 'writes', level: 'ok', text: 'the server takes writes' }]
  } catch (error) {
    const text = `the server refuses writes, so it takes no job: ${safeText(error)}`
    return [{ check: 'writes', level: 'problem', text, action: 'do what the message of Redis says' }]
  }
}

async function durability({ infos, calls }: Server): Promise<Finding[]> {
  const found: Finding[] = []
  const without = infos.filter((info) => fieldOf(info, 'aof_enabled') !== '1').length
  if (without > 0) {
    const text =
      'no append-only file: a crash of the server loses everything since its last snapshot, acknowledged or not'
    found.push({
      check: 'durability',
      level: 'problem',
      text,
      action: 'CONFIG SET appendonly yes, and the same in redis.conf',
    })
  } else if ((await configOf(calls, 'appendfsync')) === 'no') {
    const text = 'appendfsync no: a crash of the machine loses what the system has not written, often 30 s'
    found.push({
      check: 'durability',
      level: 'warning',
      text,
      action: 'set appendfsync everysec (loses up to 2 s) or always',
    })
  }
  if (
    infos.some(
      (info) =>
        fieldOf(info, 'aof_last_write_status') === 'err' || fieldOf(info, 'aof_last_bgrewrite_status') === 'err',
    )
  ) {
    found.push({
      check: 'durability',
      level: 'problem',
      text: 'the append-only file could not be written',
      action: 'look at the disk and the log of Redis',
    })
  }
  return found.length > 0 ? found : [{ check: 'durability', level: 'ok', text: 'the append-only file is on' }]
}

/** @throws where the user may not ask */
async function configOf(calls: Calls, name: string): Promise<string> {
  const [node] = mastersOf(calls.client)
  const [, value] = ((await node?.config('GET', name)) ?? []) as unknown[]
  return String(value)
}

function memory({ infos }: Server): Finding[] {
  const found: Finding[] = []
  for (const info of infos) {
    const number = (name: string) => Number(fieldOf(info, name) ?? 0)
    const policy = evicting(info)
    if (policy !== undefined) {
      const text = `maxmemory-policy ${policy}: a full server would drop jobs`
      found.push({ check: 'memory', level: 'problem', text, action: 'CONFIG SET maxmemory-policy noeviction' })
    }
    const [used, most, resident] = [number('used_memory'), number('maxmemory'), number('used_memory_rss')]
    if (most > 0 && used > most * NEARLY_FULL) {
      const text = `${Math.round((used / most) * 100)} % of maxmemory is used; at 100 % pushes fail with StoreFull`
      found.push({
        check: 'memory',
        level: 'warning',
        text,
        action: 'raise maxmemory, shorten keep, or set a capacity',
      })
    }
    if (most === 0) {
      const text = 'no maxmemory: where the machine has no memory left, the system ends Redis'
      found.push({
        check: 'memory',
        level: 'note',
        text,
        action: 'set maxmemory, with noeviction: pushes then fail instead',
      })
    }
    if (resident > FRAGMENTED.bytes && resident > used * FRAGMENTED.ratio) {
      const text = `Redis holds ${Math.round(resident / used)} times the memory that it uses`
      found.push({
        check: 'memory',
        level: 'note',
        text,
        action: 'CONFIG SET activedefrag yes, or restart it at a quiet time',
      })
    }
  }
  // Masters of a cluster are mostly alike.
  const distinct = [...new Map(found.map((one) => [one.text, one])).values()]
  if (distinct.length > 0) return distinct
  return [{ check: 'memory', level: 'ok', text: 'the server drops no keys, and has room' }]
}

function replicas({ infos, settings }: Server): Finding[] {
  const counts = infos.map((info) => Number(fieldOf(info, 'connected_slaves') ?? 0))
  const least = Math.min(...counts)
  if (settings.wait > least) {
    const text = `wait=${settings.wait}, and a master has ${least} replicas: every push fails`
    return [{ check: 'replicas', level: 'problem', text, action: 'connect replicas, or lower wait' }]
  }
  if (least > 0 && settings.wait === 0) {
    const text = 'there are replicas, and pushes do not wait for them: a fail-over loses the last ones'
    return [{ check: 'replicas', level: 'warning', text, action: 'open the store with wait=1, where that is too much' }]
  }
  return [
    {
      check: 'replicas',
      level: 'ok',
      text: settings.wait > 0 ? `pushes wait for ${settings.wait} replicas` : 'there are no replicas',
    },
  ]
}

async function leases({ calls, settings }: Server): Promise<Finding[]> {
  const start = `{${settings.prefix}}:`
  const queues = await calls.command('smembers', `${start}queues`)
  let over = 0
  for (const queue of Array.isArray(queues) ? queues : []) {
    over += Number(await calls.command('zcount', `${start}${queue}:running`, '-inf', Date.now() - STUCK))
  }
  return [leaseFinding(over)]
}

/**
 * Queues, and pages of waiting jobs, of which the counts are compared with the jobs: in one step of the server. Per queue: `waiting` as
 * counted, the entries of its pages, 17 bytes each, and the sizes of its other lists. Nothing, where there is more.
 */
const COUNTS = `
local function key(queue, name) return KEYS[1] .. queue .. ':' .. name end
local queues, pages = redis.call('SMEMBERS', KEYS[1] .. 'queues'), 0
if #queues > 1000 then return {} end
for _, queue in ipairs(queues) do pages = pages + redis.call('HLEN', key(queue, 'pages')) end
if pages > 2000 then return {} end
local out = { redis.call('HLEN', KEYS[1] .. 'jobs') }
for _, queue in ipairs(queues) do
  local entries, others = 0, 0
  for _, page in ipairs(redis.call('HVALS', key(queue, 'pages'))) do entries = entries + #page / 17 end
  for name in string.gmatch('awaiting scheduled running done dead cancelled', '%S+') do
    others = others + redis.call('ZCARD', key(queue, name))
  end
  local waiting = tonumber(redis.call('HGET', key(queue, 'queue'), 'waiting')) or 0
  out[#out + 1], out[#out + 2], out[#out + 3], out[#out + 4] = queue, waiting, entries, others
end
return out`

async function counts({ calls, settings }: Server): Promise<Finding[]> {
  const start = `{${settings.prefix}}:`
  const answer = await calls.command('eval', COUNTS, 1, start)
  const [stored, ...values]: unknown[] = Array.isArray(answer) ? answer : []
  if (stored === undefined)
    return notCounted('look anew when fewer jobs wait, or compare millpond stats and millpond jobs')
  const queues = chunks(values, 4).map(([name, counted, there, others]) => ({
    ...{ queue: String(name), state: 'waiting', counted: numberIn(counted), there: numberIn(there) },
    all: numberIn(there) + numberIn(others),
  }))
  const wrong = queues.filter(({ counted, there }) => counted !== there)
  const found = countFindings(wrong, ({ queue, there }) => `HSET ${start}${queue}:queue waiting ${there}`)
  const listed = queues.reduce((sum, { all }) => sum + all, 0)
  if (stored === listed) return found
  const text = `${stored} jobs are stored, and the lists of the queues have ${listed}`
  const action = 'find out who changed or removed keys of the pond; restore a snapshot'
  return [...found.filter(({ level }) => level !== 'ok'), { check: 'counts', level: 'problem', text, action }]
}

async function clock({ calls }: Server): Promise<Finding[]> {
  const found: Finding[] = []
  for (const node of mastersOf(calls.client)) {
    const before = Date.now()
    const [seconds, micros] = await node.time()
    found.push(clockFinding(Number(seconds) * 1000 + Number(micros) / 1000, [before - 1, Date.now() + 1]))
  }
  const wrong = found.filter(({ level }) => level !== 'ok')
  return wrong.length > 0 ? wrong : found.slice(0, 1)
}

async function rights({ calls, settings }: Server): Promise<Finding[]> {
  const found: Finding[] = []
  if (settings.password === undefined) {
    const text = 'the server asks for no password: whoever reaches it can read and remove jobs'
    found.push({
      check: 'rights',
      level: 'warning',
      text,
      action: 'set requirepass, or a user by ACL: docs/redis.md has one',
    })
  }
  for (const node of mastersOf(calls.client)) {
    const whoami = String(await node.acl('WHOAMI').catch(() => ''))
    if (whoami === 'default' && settings.password !== undefined) {
      found.push({
        check: 'rights',
        level: 'note',
        text: 'Millpond uses the user default, which may do everything',
        action: 'docs/redis.md has a narrower ACL',
      })
    }
    break
  }
  return found.length > 0 ? found : [{ check: 'rights', level: 'ok', text: 'a user of its own, with a password' }]
}
