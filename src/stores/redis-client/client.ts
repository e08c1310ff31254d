/** Makes connections to Redis, and replaces those on which the server has fallen silent. */
import type { Redis } from 'ioredis'
import { MillpondError } from '../../values/errors/errors.ts'
import { safeText } from '../../values/errors/safe-error.ts'
import { loadIoredis } from '../driver.ts'
import { isTlsError } from '../tls.ts'
import type { Client, ClientSettings } from './settings.ts'
import { unrefConnections } from './unref.ts'

/** Milliseconds in which a node of a cluster must answer to a PING. */
const PING_TIMEOUT = 1000

/** Soon at first, since workers wait; then at most once a second. */
const retryIn = (times: number): number => Math.min(20 * times, 1000)

/** Options of a caller's client that would change what calls answer, or when. */
const PLAIN_ANSWERS = {
  enableAutoPipelining: false,
  stringNumbers: false,
  monitor: false,
  readOnly: false,
  commandTimeout: undefined,
  socketTimeout: undefined,
  replyMapping: 'legacy' as const,
}

/** Errors of the connection reject the calls that it fails; the client would print them as well. */
export function prepared<T extends Client>(client: T): T {
  client.on('error', () => undefined)
  return unrefConnections(client)
}

/** What is sent again, and until when, is for `Calls` to decide; the client would do so without telling. */
const EACH_CONNECTION = {
  ...PLAIN_ANSWERS,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  // A connection that is given up is gone at once, whatever the other side says.
  disconnectTimeout: 50,
  // A master that became a replica answers READONLY on the old connection.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
}
const SINGLE = {
  role: 'master' as const,
  enableOfflineQueue: false,
  lazyConnect: false,
  retryStrategy: retryIn,
  // With Sentinel: asked on each connection, and heard when a replica takes over.
  sentinelRetryStrategy: retryIn,
  failoverDetector: true,
}
const CLUSTER = {
  enableAutoPipelining: false,
  // Replicas are behind.
  scaleReads: 'master' as const,
  enableOfflineQueue: false,
  lazyConnect: false,
  clusterRetryStrategy: retryIn,
  slotsRefreshTimeout: 1000,
  retryDelayOnFailover: 50,
  retryDelayOnClusterDown: 50,
  retryDelayOnTryAgain: 20,
  maxRedirections: 16,
}

/** A client of our own that connects to the same servers. */
export function ownLike(client: Client, timeout: number): Client {
  const each = { ...EACH_CONNECTION, connectTimeout: timeout }
  const own = prepared(
    'nodes' in client
      ? // ioredis 5 replaces `redisOptions` whole, and the password with them.
        client.duplicate([], { ...CLUSTER, redisOptions: { ...client.options.redisOptions, ...each } })
      : client.duplicate({ ...each, ...SINGLE, sentinelCommandTimeout: timeout }),
  )
  replaceWhereNotReady(own, timeout)
  return own
}

/** Rejects nothing but a missing package: whether the server is there is seen by `connected`. */
export async function newClient(settings: ClientSettings): Promise<Client> {
  const { Cluster, Redis } = await loadIoredis()
  const { username, password, tls, db, timeout, sentinel } = settings
  const nodes = [...settings.nodes]
  const redisOptions = {
    ...EACH_CONNECTION,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls: {} }),
    connectionName: 'millpond',
    disableClientInfo: true,
    connectTimeout: timeout,
  }
  if (settings.cluster) {
    const own = prepared(new Cluster(nodes, { ...CLUSTER, redisOptions }))
    replaceWhereNotReady(own, timeout)
    return own
  }
  const address = sentinel && {
    sentinels: nodes,
    name: sentinel.master,
    ...(sentinel.username && { sentinelUsername: sentinel.username }),
    ...(sentinel.password && { sentinelPassword: sentinel.password }),
    ...(tls && { sentinelTLS: {}, enableTLSForSentinelMode: true }),
    sentinelCommandTimeout: timeout,
  }
  const own = prepared(new Redis({ ...redisOptions, ...SINGLE, ...(address ?? nodes[0]), db }))
  replaceWhereNotReady(own, timeout)
  return own
}

/** A load balancer may accept a connection for a server that is gone. The client would wait for its first answer for ever. */
function replaceWhereNotReady(client: Client, timeout: number): void {
  if ('nodes' in client) {
    client.on('+node', (node: Redis) => replaceWhereNotReady(node, timeout))
    for (const node of client.nodes()) replaceWhereNotReady(node, timeout)
    return
  }
  let timer: NodeJS.Timeout | undefined
  const waits = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => client.disconnect(true), timeout).unref()
  }
  client.on('connect', waits)
  for (const event of ['ready', 'close', 'end']) client.on(event, () => clearTimeout(timer))
  if (client.status === 'connect') waits()
}

/** Resolves when the client can send; rejects when it has not connected within the time. */
export async function connected(client: Client, { timeout, where }: ClientSettings): Promise<void> {
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
    const isTls = isTlsError(error)
    const advice = isTls ? ': its certificate must be trusted (NODE_EXTRA_CA_CERTS) and be for that host' : ''
    const message = `cannot reach Redis at ${where}${advice}: ${safeText(error)}`
    throw new MillpondError('StoreUnavailable', message, { cause: error })
  } finally {
    clearTimeout(timer)
    client.off('ready', resolve)
    client.off('error', failed)
    client.off('end', ended)
  }
}

/**
 * A client of ours that asks sentinels ends for good if its connection is cut before it is ready, which its failover detector does. Such
 * a client must be told to connect again.
 */
export function reconnectIfEnded(client: Client): void {
  if (!('nodes' in client) && client.status === 'end') client.connect().catch(() => undefined)
}

/**
 * Replaces a silent connection. Calls under way on it fail, as if it had been cut. Otherwise it stays open until the system notices,
 * minutes later.
 */
export function replaceConnection(client: Client): void {
  if (!('nodes' in client)) {
    reconnectIfEnded(client)
    // A connection that is being made has limits of its own.
    if (client.status !== 'connecting') client.disconnect(true)
    return
  }
  // Which node is silent is seen by asking all. The client finds out by itself which has taken its place.
  for (const node of client.nodes('all')) if (node.status !== 'wait') disconnectIfSilent(node)
  client.refreshSlotsCache()
  setTimeout(() => client.refreshSlotsCache(), PING_TIMEOUT + 100).unref()
}

function disconnectIfSilent(node: Redis): void {
  const timer = setTimeout(() => node.disconnect(), PING_TIMEOUT).unref()
  const answered = (): void => clearTimeout(timer)
  node.ping().then(answered, answered)
}
