/** From the store's URL and options to what the client and the store are made with. */
import type { Cluster, Redis } from 'ioredis'
import type { StoreOptions } from '../../store.ts'
import { kindOf, shown } from '../../values/duration.ts'
import { MillpondError } from '../../values/errors.ts'
import { shownName } from '../../values/options.ts'
import { credential, serverUrl } from '../url.ts'

export type Client = Redis | Cluster

export interface Settings {
  /** What every key's hash tag begins with. */
  prefix: string
  /** How many parts a queue that comes into being here is split into. */
  partitions: number
  /** How many replicas must have a push or an ending before it is acknowledged. */
  wait: number
  /** Milliseconds until a call without an answer is rejected. */
  timeout: number
  /** The URL names a node of a cluster. */
  cluster: boolean
  /** Handed in by the caller, who also closes it. */
  client: Client | undefined
  /** The URL names sentinels, which know the master by this name, and may want a user and a password of their own. */
  sentinel: { master: string; username?: string; password?: string } | undefined
  /** Nodes, or sentinels, by address: the first is the URL's own. */
  nodes: readonly { host: string; port: number }[]
  username: string | undefined
  password: string | undefined
  db: number
  tls: boolean
  /** For messages: the address, without the password. */
  where: string
}

/** For whom the settings are, and what holds where neither the URL nor the options say. */
export interface Kind {
  name: string
  known: readonly string[]
  prefix: string
  timeout: number
}
const STORE: Kind = {
  name: 'the Redis store',
  known: ['prefix', 'partitions', 'wait', 'timeout', 'cluster', 'client', 'db', 'sentinelUsername', 'sentinelPassword'],
  prefix: 'millpond',
  timeout: 5000,
}

function invalid(message: string): never {
  throw new MillpondError('InvalidOption', message)
}

function whole(name: string, value: unknown, fallback: number, least: number, most: number): number {
  if (value === undefined) return fallback
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  if (typeof number === 'number' && Number.isInteger(number) && number >= least && number <= most) return number
  return invalid(`${name} must be a whole number from ${least} to ${most}, not ${shown(value)}`)
}

function isClient(value: unknown): value is Client {
  return (
    typeof value === 'object' &&
    value !== null &&
    'callBuffer' in value &&
    typeof value.callBuffer === 'function' &&
    'duplicate' in value
  )
}

const EXAMPLE = 'redis://user:password@host:6379'
/** A list of hosts is none for the class URL, which knows one. */
const HOSTS = /^([a-z+]+:\/\/(?:[^/?#]*@)?)([^/?#]*)/i

function addressOf(given: string): URL {
  return serverUrl(
    given.replace(HOSTS, (_, before: string, hosts: string) => before + hosts.split(',')[0]),
    EXAMPLE,
  )
}

function nodesOf(given: string, defaultPort: number): { host: string; port: number }[] {
  const hosts = HOSTS.exec(given)?.[2] ?? ''
  return hosts.split(',').map((each) => {
    const { hostname, port } = serverUrl(`redis://${each}`, EXAMPLE)
    return { host: hostname.replace(/^\[|\]$/g, '') || 'localhost', port: Number(port || defaultPort) }
  })
}

/** The name of the master, before the database's number in the path of a URL that names sentinels. */
function masterOf(path: string): string {
  const name = credential(path.split('/')[1] ?? '') ?? ''
  if (/^[A-Za-z0-9._-]+$/.test(name)) return name
  return invalid('the path of a Sentinel URL is the name of the master, as in redis+sentinel://host:26379/mymaster/0')
}

function databaseOf(path: string, option: unknown): number {
  const number = path.replace(/^\//, '')
  if (number !== '' && !/^\d+$/.test(number)) invalid('the path of a Redis URL is the number of a database, from 0')
  return whole('db', option ?? (number === '' ? undefined : number), 0, 0, 2 ** 31 - 1)
}

function sentinelLogin(option: (name: string) => unknown): { username?: string; password?: string } {
  const username = option('sentinelUsername')
  const password = option('sentinelPassword')
  if (username !== undefined && typeof username !== 'string')
    invalid(`sentinelUsername must be a text, not ${kindOf(username)}`)
  if (password !== undefined && typeof password !== 'string')
    invalid(`sentinelPassword must be a text, not ${kindOf(password)}`)
  return { ...(username && { username }), ...(password && { password }) }
}

export function settingsOf(url: URL | string, options: StoreOptions, kind = STORE): Settings {
  const given = String(url)
  const address = addressOf(given)
  const query = address.searchParams
  for (const name of [...query.keys(), ...Object.keys(options)]) {
    if (name !== 'clock' && !kind.known.includes(name)) {
      invalid(`unknown option ${shownName(name)}: ${kind.name} takes ${kind.known.join(', ')}`)
    }
  }
  // What the code says beats what the URL says: the URL is often shared between programs.
  const option = (name: string): unknown => options[name] ?? query.get(name) ?? undefined
  const prefix = option('prefix') ?? kind.prefix
  if (typeof prefix !== 'string' || !/^[A-Za-z0-9_.-]{1,64}$/.test(prefix)) {
    invalid(`prefix must be 1 to 64 of the characters A-Z a-z 0-9 _ - . , not ${shown(prefix)}`)
  }
  const cluster = option('cluster') ?? false
  if (![true, false, 'true', 'false', '1', '0', ''].some((known) => known === cluster)) {
    invalid(`cluster must be true or false, not ${shown(cluster)}`)
  }
  const client = options.client
  if (client !== undefined && !isClient(client)) invalid('client must be a Redis or a Cluster of ioredis')
  if (isClient(client) && 'keyPrefix' in client.options && client.options.keyPrefix) {
    invalid('the client has a keyPrefix, which bells would not have: use the option prefix instead')
  }
  if (query.has('client')) invalid('client can only be an option of open, not of the URL')
  const sentinels = address.protocol.endsWith('+sentinel:')
  const nodes = nodesOf(given, sentinels ? 26379 : 6379)
  const master = sentinels ? masterOf(address.pathname) : undefined
  const db = databaseOf(address.pathname.replace(sentinels ? /^\/[^/]*/ : '', ''), option('db'))
  const isCluster =
    cluster === true || cluster === 'true' || cluster === '1' || cluster === '' || (nodes.length > 1 && !sentinels)
  if (isCluster && sentinels) invalid('sentinels watch single servers: a cluster needs none')
  if (isCluster && db !== 0) invalid('a Redis Cluster has only database 0')
  return {
    prefix,
    partitions: whole('partitions', option('partitions'), 1, 1, 256),
    wait: whole('wait', option('wait'), 0, 0, 100),
    timeout: whole('timeout', option('timeout'), kind.timeout, 100, 600_000),
    cluster: isCluster,
    client,
    sentinel: master === undefined ? undefined : { master, ...sentinelLogin(option) },
    nodes,
    username: credential(address.username),
    password: credential(address.password),
    db,
    tls: address.protocol.startsWith('rediss'),
    where: nodes.map(({ host, port }) => `${host}:${port}`).join(','),
  }
}
