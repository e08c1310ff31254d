/** What the RabbitMQ store takes in its URL and options. */
import type { StoreOptions } from '../../store.ts'
import { shown } from '../../values/time/duration.ts'
import { checkNames, invalid, optionIn, wholeNumber } from '../options.ts'
import { credential, serverUrls } from '../url.ts'

export interface Settings {
  /** What the names of exchanges and queues begin with. */
  prefix: string
  /** Whether queues of the same name that other programs made are consumed as well. */
  foreign: boolean
  /** Milliseconds until a call without an answer is rejected. */
  timeout: number
  /** Seconds between heartbeats. After two without a sign of life, a connection is given up. */
  heartbeat: number
  /** Nodes of a cluster. The first one that answers is used. */
  nodes: readonly { hostname: string; port: number }[]
  credentials: { protocol: 'amqp' | 'amqps'; username: string; password: string; vhost: string }
  /** For messages: the addresses, without the password. */
  where: string
}

const TIMEOUT = [5000, 100, 600_000] as const
const HEARTBEAT = [15, 1, 600] as const
const FOREIGN = [0, 0, 1] as const

/** @throws InvalidOption */
export function settingsOf(url: URL | string, options: StoreOptions): Settings {
  const urls = serverUrls(String(url), 'amqp://user:password@host:5672/vhost')
  const { protocol, pathname, username, password, searchParams: query } = urls[0]
  checkNames(options, query.keys(), ['prefix', 'foreign', 'timeout', 'heartbeat'], 'the RabbitMQ store')
  const option = optionIn(options, query)
  const prefix = option('prefix') ?? 'millpond'
  if (typeof prefix !== 'string' || !/^[\w-]{1,64}$/.test(prefix)) {
    return invalid(`prefix must be 1 to 64 of the characters A-Z a-z 0-9 _ - , not ${shown(prefix)}`)
  }
  const isSecure = protocol === 'amqps:'
  const nodes = urls.map(({ hostname, port }) => ({
    hostname: hostname.replace(/^\[|\]$/g, '') || 'localhost',
    port: Number(port || (isSecure ? 5671 : 5672)),
  }))
  return {
    foreign: wholeNumber('foreign', option('foreign'), FOREIGN) === 1,
    ...{ prefix, nodes, where: nodes.map(({ hostname, port }) => `${hostname}:${port}`).join(',') },
    timeout: wholeNumber('timeout', option('timeout'), TIMEOUT),
    heartbeat: wholeNumber('heartbeat', option('heartbeat'), HEARTBEAT),
    credentials: {
      protocol: isSecure ? 'amqps' : 'amqp',
      username: credential(username) ?? 'guest',
      password: credential(password) ?? 'guest',
      vhost: credential(pathname.slice(1)) ?? '/',
    },
  }
}
