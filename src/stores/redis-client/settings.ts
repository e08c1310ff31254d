/** From the URL and options of the store or cache to what a client of Redis is made with. */
import type { Cluster, Redis } from 'ioredis'
import { kindOf, shown } from '../../values/time/duration.ts'
import { checkNames, invalid, optionIn, wholeNumber } from '../options.ts'
import { credential, serverUrls } from '../url.ts'

export type Client = Redis | Cluster

/** A `Client` as its owner gives it, told by what it can do: the types of the package need none of ioredis. */
export interface GivenClient {
  readonly options: object
  callBuffer(command: string): Promise<unknown>
  duplicate(): unknown
}

export interface ClientSettings {
  /** What every key begins with. */
  prefix: string
  /** The URL names nodes of a cluster. */
  cluster: boolean
  /** The caller's own, which the caller also closes. */
  client: Client | undefined
  /** The URL names sentinels, which know the master by this name, and may want a user and a password of their own. */
  sentinel: { master: string; username: string | undefined; password: string | undefined } | undefined
  /** Nodes, or sentinels, by address: the first is the URL's own. */
  nodes: readonly { host: string; port: number }[]
  username: string | undefined
  password: string | undefined
  db: number
  tls: boolean
  /** Milliseconds until a call without an answer is rejected. */
  timeout: number
  /** For messages: the address, without the password. */
  where: string
}

/** What the user of a client takes in its URL and options. */
interface Accepted<Name extends string> {
  /** Whose options they are, for messages. */
  by: string
  /** Where none is given. */
  prefix: string
  /** Options that are whole numbers: the default, the least and the most. */
  numbers: Readonly<Record<Name | 'timeout', readonly [fallback: number, least: number, most: number]>>
  /** All others. */
  others: readonly string[]
}

function isClient(value: unknown): value is Client {
  if (typeof value !== 'object' || value === null) return false
  return 'callBuffer' in value && typeof value.callBuffer === 'function' && 'duplicate' in value
}

const EXAMPLE = 'redis://user:password@host:6379'

/** @throws InvalidOption */
export function settingsOf<Name extends string>(
  url: URL | string,
  options: Readonly<Record<string, unknown>>,
  { by, prefix: defaultPrefix, numbers, others }: Accepted<Name>,
): ClientSettings & Record<Name, number> {
  const urls = serverUrls(String(url), EXAMPLE)
  const { protocol, pathname, username, password, searchParams: query } = urls[0]
  const known = ['prefix', ...Object.keys(numbers), 'cluster', 'client', 'db', ...others]
  checkNames(options, query.keys(), known, by)
  const option = optionIn(options, query)
  const textOption = (name: string): string | undefined => {
    const text = option(name)
    return text === undefined || typeof text === 'string'
      ? text
      : invalid(`${name} must be a text, not ${kindOf(text)}`)
  }
  const prefix = option('prefix') ?? defaultPrefix
  if (typeof prefix !== 'string' || !/^[A-Za-z0-9_.-]{1,64}$/.test(prefix)) {
    return invalid(`prefix must be 1 to 64 of the characters A-Z a-z 0-9 _ - . , not ${shown(prefix)}`)
  }
  const { client } = options
  if (query.has('client')) invalid('client can only be an option of open, not of the URL')
  if (client !== undefined && !isClient(client)) return invalid('client must be a Redis or a Cluster of ioredis')
  if (client !== undefined && 'keyPrefix' in client.options && client.options.keyPrefix) {
    invalid('the client has a keyPrefix, which bells would not have: use the option prefix instead')
  }
  const hasSentinels = protocol.endsWith('+sentinel:')
  const nodes = urls.map(({ hostname, port }) => ({
    host: hostname.replace(/^\[|\]$/g, '') || 'localhost',
    port: Number(port || (hasSentinels ? 26379 : 6379)),
  }))
  // With sentinels the name of the master stands before the number of the database.
  const [, master = '', path = ''] = hasSentinels ? (/^\/?([^/]*)(.*)$/.exec(pathname) ?? []) : ['', '', pathname]
  const name = credential(master) ?? ''
  if (hasSentinels && !/^[A-Za-z0-9._-]+$/.test(name)) {
    invalid('the path of a Sentinel URL is the name of the master, as in redis+sentinel://host:26379/mymaster/0')
  }
  const number = path.replace(/^\//, '')
  if (!/^\d*$/.test(number)) invalid('the path of a Redis URL is the number of a database, from 0')
  const db = wholeNumber('db', option('db') ?? (number || undefined), [0, 0, 2 ** 31 - 1])
  const clusterOption = option('cluster') ?? false
  const isTrue = [true, 'true', '1', ''].some((known) => known === clusterOption)
  if (!isTrue && ![false, 'false', '0'].some((known) => known === clusterOption)) {
    invalid(`cluster must be true or false, not ${shown(clusterOption)}`)
  }
  const cluster = isTrue || (nodes.length > 1 && !hasSentinels)
  if (cluster && hasSentinels) invalid('sentinels watch single servers: a cluster needs none')
  if (cluster && db !== 0) invalid('a Redis Cluster has only database 0')
  const login = () => ({ username: textOption('sentinelUsername'), password: textOption('sentinelPassword') })
  const given = Object.entries<readonly [number, number, number]>(numbers).map(
    ([name, bounds]) => [name, wholeNumber(name, option(name), bounds)] as const,
  )
  return {
    ...(Object.fromEntries(given) as Record<Name | 'timeout', number>),
    prefix,
    cluster,
    client,
    sentinel: hasSentinels ? { master: name, ...login() } : undefined,
    nodes,
    username: credential(username),
    password: credential(password),
    db,
    tls: protocol.startsWith('rediss'),
    where: nodes.map(({ host, port }) => `${host}:${port}`).join(','),
  }
}
