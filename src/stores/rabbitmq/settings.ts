/** What the RabbitMQ store takes in its URL and options. */
import type { StoreOptions } from '../../store.ts'
import { shown } from '../../values/duration.ts'
import { checkNames, invalid, optionIn, wholeNumber } from '../options.ts'
import { credential, serverUrls } from '../url.ts'

export interface Settings {
  /** What the names of exchanges and queues begin with. */
  prefix: string
  /** Queues of the same name that others made are consumed, too. */
  foreign: boolean
  /** Milliseconds until a call without an answer is rejected. */
  timeout: number
  /** Seconds between heartbeats. After two without a sign of life, a connection is given up. */
  heartbeat: number
  /** Nodes of a cluster; connected to in this order until one answers. */
  nodes: readonly { hostname: string; port: number }[]
  protocol: 'amqp' | 'amqps'
  username: string
  password: string
  vhost: string
  /** For messages: the addresses, without the password. */
  where: string
}

const NUMBERS = { timeout: [5000, 100, 600_000], heartbeat: [15, 1, 600] } as const
const YES = ['1', 'true', '', true]
const NO = ['0', 'false', false, undefined]

/** @throws InvalidOption */
export function settingsOf(url: URL | string, options: StoreOptions): Settings {
  const urls = serverUrls(String(url), 'amqp://user:password@host:5672/vhost')
  const { protocol, pathname, username, password, searchParams: query } = urls[0]
  checkNames(options, query.keys(), ['prefix', 'foreign', ...Object.keys(NUMBERS)], 'the RabbitMQ store')
  const option = optionIn(options, query)
  const prefix = option('prefix') ?? 'millpond'
  if (typeof prefix !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(prefix)) {
    return invalid(`prefix must be 1 to 64 of the characters A-Z a-z 0-9 _ - , not ${shown(prefix)}`)
  }
  const foreign = option('foreign')
  const isYes = YES.some((yes) => yes === foreign)
  if (!isYes && !NO.some((no) => no === foreign)) return invalid(`foreign must be 1 or 0, not ${shown(foreign)}`)
  const secure = protocol === 'amqps:'
  const nodes = urls.map(({ hostname, port }) => ({
    hostname: hostname.replace(/^\[|\]$/g, '') || 'localhost',
    port: Number(port || (secure ? 5671 : 5672)),
  }))
  return {
    prefix,
    foreign: isYes,
    timeout: wholeNumber('timeout', option('timeout'), NUMBERS.timeout),
    heartbeat: wholeNumber('heartbeat', option('heartbeat'), NUMBERS.heartbeat),
    nodes,
    protocol: secure ? 'amqps' : 'amqp',
    username: credential(username) ?? 'guest',
    password: credential(password) ?? 'guest',
    vhost: credential(pathname.slice(1)) ?? '/',
    where: nodes.map(({ hostname, port }) => `${hostname}:${port}`).join(','),
  }
}
