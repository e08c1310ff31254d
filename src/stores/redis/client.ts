/** Makes the client, and checks that the server is one that keeps what it is given. */
import { MillpondError } from '../../errors.ts'
import { safeText } from '../../safe-error.ts'
import { loadIoredis } from '../driver.ts'
import { isTlsError } from '../tls.ts'
import { toMillpondError } from './errors.ts'
import type { Client, Settings } from './settings.ts'
import { unheld } from './unheld.ts'

/** Soon at first, since workers wait; then at most once a second. */
const retryIn = (times: number): number => Math.min(20 * times, 1000)

/** What is wrong with the connection is told by the calls that it fails; the client would print it as well. */
function quiet<T extends Client>(client: T): T {
  client.on('error', () => undefined)
  return unheld(client)
}

/** What is sent again, and until when, is the link's to decide; the client would do so without telling. */
const OURS = {
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  // A connection that is given up is gone at once, whatever the other side says.
  disconnectTimeout: 50,
  // A master that became a replica answers READONLY on the old connection.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
}
const OURS_ALONE = { enableOfflineQueue: false, lazyConnect: false, retryStrategy: retryIn }
const OURS_IN_CLUSTER = {
  enableOfflineQueue: false,
  lazyConnect: false,
  clusterRetryStrategy: retryIn,
  slotsRefreshTimeout: 1000,
  retryDelayOnFailover: 50,
  retryDelayOnClusterDown: 50,
  retryDelayOnTryAgain: 20,
  maxRedirections: 16,
}

/** The caller's own, or a new one. Rejects nothing: whether the server is there is seen by the first call. */
export async function clientFor(settings: Settings): Promise<Client> {
  return settings.client ?? newClient(settings)
}

/** One of our own in any case. Where the caller handed one in, it goes where that goes, and behaves as the store needs it. */
export async function ownClient(settings: Settings): Promise<Client> {
  return settings.client === undefined ? newClient(settings) : ownLike(settings.client)
}

/** Another connection to the same server. */
export function ownLike(client: Client): Client {
  return quiet(
    'nodes' in client
      ? client.duplicate([], { ...OURS_IN_CLUSTER, redisOptions: OURS })
      : client.duplicate({ ...OURS, ...OURS_ALONE }),
  )
}

async function newClient(settings: Settings): Promise<Client> {
  const { Cluster, Redis } = await loadIoredis()
  const { username, password, tls, db } = settings
  const redisOptions = {
    ...OURS,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls ? { tls: {} } : {}),
    connectionName: 'millpond',
    disableClientInfo: true,
    connectTimeout: settings.timeout,
  }
  if (settings.cluster) return quiet(new Cluster([...settings.nodes], { ...OURS_IN_CLUSTER, redisOptions }))
  const [node = { host: 'localhost', port: 6379 }] = settings.nodes
  return quiet(new Redis({ ...redisOptions, ...OURS_ALONE, ...node, db }))
}

/** Resolves when the client can send; rejects when it has not connected within the time. */
export async function connected(client: Client, { timeout, where }: Settings): Promise<void> {
  if (client.status === 'wait') client.connect().catch(() => undefined)
  if (client.status === 'ready') return
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let last: unknown = new Error(`no connection within ${timeout} ms`)
  const failed = (error: unknown) => {
    last = error
    // Nothing but another password, user or certificate will help.
    if (/NOAUTH|WRONGPASS|NOPERM|invalid password/i.test(String(error)) || isTlsError(error)) reject(error)
  }
  const timer = setTimeout(() => reject(last), timeout)
  const ended = () => reject(last)
  client.once('ready', resolve)
  client.on('error', failed)
  client.once('end', ended)
  try {
    await promise
  } catch (error) {
    const advice = isTlsError(error)
      ? ': its certificate must be trusted (NODE_EXTRA_CA_CERTS) and be for that host'
      : ''
    const message = `cannot reach Redis at ${where}${advice}: ${safeText(error)}`
    throw new MillpondError('StoreUnavailable', message, { cause: error })
  } finally {
    clearTimeout(timer)
    client.off('ready', resolve)
    client.off('error', failed)
    client.off('end', ended)
  }
}

/** What the server's settings promise for what it has acknowledged. */
export interface ServerFacts {
  version: string
  /** In words for people: what a crash of the server may cost. */
  durability: string
  /** Whether it writes down what it acknowledges at all. */
  persistent: boolean
}

const OLDEST = [6, 2] as const
/** Servers of which this process has been told already that they write nothing down. */
const warned = new Set<string>()

function fieldsOf(info: string): Map<string, string> {
  const lines = info.split('\r\n').filter((line) => line.includes(':'))
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

/** @throws StoreVersion, StoreUnavailable */
export async function checkServer(client: Client, where: string): Promise<ServerFacts> {
  const nodes = 'nodes' in client ? client.nodes('master') : [client]
  let facts: ServerFacts | undefined
  for (const node of nodes) {
    try {
      const fields = fieldsOf(
        `${await node.info('server')}\r\n${await node.info('memory')}\r\n${await node.info('persistence')}`,
      )
      checkVersion(fields, where)
      checkEviction(fields, where)
      facts ??= {
        version: fields.get('redis_version') ?? '',
        durability: await durabilityOf(node, fields),
        persistent: fields.get('aof_enabled') === '1',
      }
    } catch (error) {
      throw toMillpondError(error, where)
    }
  }
  if (facts?.persistent === false && !warned.has(where)) {
    warned.add(where)
    process.emitWarning(`Redis at ${where}: ${facts.durability}`, { type: 'MillpondWarning', code: 'RedisPersistence' })
  }
  if (facts === undefined) throw new MillpondError('StoreUnavailable', `the cluster at ${where} has no master`)
  return facts
}

function checkVersion(fields: ReadonlyMap<string, string>, where: string): void {
  // Valkey tells its own version apart, and here the one of Redis that it is compatible with.
  const version = fields.get('redis_version') ?? ''
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return
  const message = `Redis ${version} at ${where} is too old: the store needs ${OLDEST.join('.')} or later, or Valkey`
  throw new MillpondError('StoreUnavailable', message)
}

function checkEviction(fields: ReadonlyMap<string, string>, where: string): void {
  const policy = fields.get('maxmemory_policy') ?? 'noeviction'
  const most = Number(fields.get('maxmemory') ?? 0)
  if (most === 0 || policy === 'noeviction') return
  const message =
    `Redis at ${where} would drop jobs when its memory is full (maxmemory-policy ${policy}): ` +
    'set maxmemory-policy to noeviction, or use another server for queues'
  throw new MillpondError('StoreUnavailable', message)
}

interface ConfigReader {
  config(subcommand: 'GET', name: string): Promise<unknown>
}

async function durabilityOf(node: ConfigReader, fields: ReadonlyMap<string, string>): Promise<string> {
  if (fields.get('aof_enabled') !== '1') {
    return 'no append-only file: a crash of the server loses everything since its last snapshot, acknowledged or not (set appendonly yes)'
  }
  const fsync = await setting(node, 'appendfsync')
  if (fsync === 'always') return 'appendonly with appendfsync always: what was acknowledged is on the disk'
  if (fsync === 'no')
    return 'appendonly with appendfsync no: a crash of the machine loses what its system had not written, often 30 s'
  if (fsync === 'everysec')
    return 'appendonly with appendfsync everysec: a crash of the machine loses up to two seconds of what was acknowledged'
  return 'appendonly; appendfsync could not be read: unless it is always, a crash of the machine loses the last moments'
}

/** null where the server keeps its settings to itself, as managed ones do. */
async function setting(node: ConfigReader, name: string): Promise<string | null> {
  try {
    const answer: unknown = await node.config('GET', name)
    if (Array.isArray(answer)) return typeof answer[1] === 'string' ? answer[1] : null
    if (typeof answer === 'object' && answer !== null && name in answer) return String(Object.entries(answer)[0]?.[1])
    return null
  } catch {
    return null
  }
}
