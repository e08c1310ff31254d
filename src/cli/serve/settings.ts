/** The settings of `millpond serve`, from the command line, the environment and files. Secrets come only from the latter two. */

import { lookup } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import type { AlertOptions } from '../../alerts/index.ts'
import { OWN_QUEUE } from '../../alerts/readings.ts'
import { LARGEST_PAYLOAD } from '../../values/encoding/encoding.ts'
import { defined } from '../../values/options/options.ts'
import { isError } from '../../values/runtime/realms.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { checkQueueName } from '../../values/settings/names.ts'
import { shown } from '../../values/time/duration.ts'
import { tokenFault } from '../../web/tokens.ts'
import type { Delivery } from '../../webhook/delivery.ts'
import { signingKey } from '../../webhook/signature.ts'
import { type Arguments, type Environment, JSON_LINES, orUsageError, STORE } from '../arguments.ts'
import { UsageError } from '../usage-error.ts'
import { alertOptions } from './alerts.ts'

export const OPTIONS = {
  ...STORE,
  port: { value: 'N', help: '8080 unless given; 0: any that is free' },
  host: { value: 'ADDRESS', help: '127.0.0.1 unless given; one that others can reach needs a token' },
  'token-file': { value: 'FILE', help: 'tokens, one a line, each of 16 characters at least; or MILLPOND_TOKEN' },
  'allow-host': { value: 'NAME', multiple: true, help: 'a further name that Host may have where there is no token' },
  dashboard: { help: 'shows the dashboard at /dashboard/; by a token, or without tokens for this machine alone' },
  deliver: { value: 'QUEUE=URL', multiple: true, help: 'delivers the queue to a webhook' },
  'webhook-secrets': {
    value: 'FILE',
    help:
      'JSON: { "QUEUE": "whsec_…" or ["whsec_new…", "whsec_old…"] }; or\n' +
      'MILLPOND_WEBHOOK_SECRET, one or more for all, with spaces between them',
  },
  'deliver-concurrency': { value: 'N', help: 'requests to each webhook at once; 10 unless given' },
  'deliver-timeout': { value: 'TIME', help: 'how long a webhook may take to answer; 20s unless given' },
  alerts: {
    value: 'FILE',
    help: 'rules, and who is told, as JSON; see docs/alerts.md. The secret of a\nwebhook is that of the queue millpond/alerts',
  },
  'deliver-insecure': { help: 'allows http: to other machines' },
  'max-body': { value: 'BYTES', help: 'of a request; 2097152 unless given' },
  'max-payload': {
    value: 'BYTES',
    help: "of a job's data, result or progress; 1048576 unless given, 16 MiB at most",
  },
  'long-poll': { value: 'TIME', help: 'longest wait of a claim or a long poll; 60s unless given' },
  'max-waiting': { value: 'N', help: 'requests of a kind that wait at once; 1000 unless given' },
  'max-waiting-per-client': {
    value: 'N',
    help: 'those of one address; half of --max-waiting unless given. Behind a\nproxy, give all',
  },
  'max-queues': { value: 'N', help: 'most queues that clients may make; 10000 unless given' },
  'metrics-queues': { value: 'N', help: 'queues with series of their own in /metrics; 100 unless given' },
  'max-connections': { value: 'N', help: '1024 unless given' },
  'stop-timeout': {
    value: 'TIME',
    help: 'how long what is under way may take after SIGTERM or SIGINT; 30s unless given',
  },
  'log-requests': { help: 'a line for every answer' },
  ...JSON_LINES,
} as const

/** See `serveSettings`. */
export type ServeSettings = Awaited<ReturnType<typeof serveSettings>>

/** @throws UsageError */
export async function serveSettings(given: Given) {
  const { env } = given
  const store = given.store()
  const tokens = tokensOf(given.text('token-file'), env)
  const address = await addressOf(given.text('host') ?? '127.0.0.1')
  if (tokens.length === 0 && !isLoopback(address)) {
    throw new UsageError(
      `${address} can be reached by others: give a token, by --token-file or MILLPOND_TOKEN, or listen on 127.0.0.1`,
    )
  }
  const MIB = 1024 * 1024
  return {
    ...{ store, address, tokens, hosts: given.texts('allow-host'), deliveries: deliveriesOf(given) },
    alerts: alertsOf(given),
    port: given.whole('port', 0, 65_535) ?? 8080,
    limits: defined({
      maxBody: given.whole('max-body', 1, 512 * MIB),
      maxPayload: given.whole('max-payload', 1, LARGEST_PAYLOAD),
      longPoll: given.time('long-poll', 0),
      maxWaiting: given.whole('max-waiting', 0, 1_000_000),
      maxWaitingPerClient: given.whole('max-waiting-per-client', 0, 1_000_000),
      maxQueues: given.whole('max-queues', 0, 1_000_000),
      metricsQueues: given.whole('metrics-queues', 0, 10_000),
    }),
    connections: defined({ maxConnections: given.whole('max-connections', 1, 1_000_000) }),
    stopTimeout: given.time('stop-timeout', 0) ?? 30_000,
    dashboard: given.flag('dashboard'),
    logRequests: given.flag('log-requests'),
    json: given.flag('json'),
  }
}

type Given = Arguments<keyof typeof OPTIONS>

function codeOf(error: unknown): string | undefined {
  return isError(error) && 'code' in error ? String(error.code) : undefined
}

/** @throws UsageError */
export async function addressOf(host: string): Promise<string> {
  if (isIP(host) !== 0) return host
  try {
    // The checked address is used from here on: the name may lead elsewhere the next time.
    return (await lookup(host)).address
  } catch {
    throw new UsageError(`--host ${shown(host)} is no address and no name that is known`)
  }
}

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

export function isLoopback(address: string): boolean {
  return LOOPBACK.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

/** @throws UsageError */
export function tokensOf(file: string | undefined, env: Environment): string[] {
  const text = file === undefined ? (env.MILLPOND_TOKEN ?? '') : content('--token-file', file)
  const lines = text.split('\n').map((line) => line.trim())
  const tokens = lines.filter((line) => line !== '')
  if (file !== undefined && tokens.length === 0) throw new UsageError(`--token-file: ${file} holds no token`)
  const fault = tokens.map(tokenFault).find((one) => one !== undefined)
  if (fault !== undefined) throw new UsageError(`${file === undefined ? 'MILLPOND_TOKEN' : '--token-file'}: ${fault}`)
  return tokens
}

function content(option: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const code = codeOf(error)
    // Without the file's name: the secret itself may have been given in its place.
    throw new UsageError(`${option}: the file cannot be read${code === undefined ? '' : ` (${code})`}`)
  }
}

function deliveriesOf(given: Given): Delivery[] {
  const secretsFor = secretsOf(given)
  const concurrency = given.whole('deliver-concurrency', 1, 10_000) ?? DEFAULTS.webhook.concurrency
  const timeout = given.time('deliver-timeout', 1) ?? DEFAULTS.webhook.timeout
  const deliveries = new Map<string, Delivery>()
  for (const target of given.texts('deliver')) {
    const { queue, url } = targetOf(target, given.flag('deliver-insecure'))
    if (deliveries.has(queue)) throw new UsageError(`--deliver: ${queue} is delivered twice`)
    const keys = secretsFor('--deliver', queue).map((secret) => keyOf(queue, secret))
    deliveries.set(queue, { queue, url, keys, concurrency, timeout })
  }
  return [...deliveries.values()]
}

function targetOf(target: string, insecure: boolean): { queue: string; url: URL } {
  const [, name, text] = /^([^=]+)=(.*)$/s.exec(target) ?? []
  const url = text === undefined ? null : URL.parse(text)
  // No message shows the URL, which may hold a secret.
  if (url === null) throw new UsageError('--deliver is QUEUE=URL, such as emails=https://example.org/hook')
  const queue = orUsageError('--deliver: ', () => checkQueueName(name))
  checkReceiver(`--deliver: the URL of ${queue}`, url, insecure)
  return { queue, url }
}

/** @throws UsageError */
function checkReceiver(what: string, url: URL, insecure: boolean): void {
  if (url.username !== '' || url.password !== '') throw new UsageError(`${what} holds a password`)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const isNear = host === 'localhost' || (isIP(host) !== 0 && isLoopback(host))
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && (isNear || insecure))) {
    throw new UsageError(`${what} must be https:, or http: with --deliver-insecure`)
  }
}

function alertsOf(given: Given): Omit<AlertOptions, 'onError'> | undefined {
  const file = given.text('alerts')
  if (file === undefined) return undefined
  return alertOptions(file, content('--alerts', file), (text) => {
    const url = typeof text === 'string' ? URL.parse(text) : null
    if (url === null) throw new UsageError('--alerts: the URL of notify is none')
    checkReceiver('--alerts: the URL of notify', url, given.flag('deliver-insecure'))
    const secret = secretsOf(given)('--alerts', OWN_QUEUE)
    for (const one of secret) keyOf(OWN_QUEUE, one)
    return { url, secret }
  })
}

/** @returns the secrets of a queue, one at least @throws UsageError */
function secretsOf(given: Given): (option: string, queue: string) => string[] {
  const file = given.text('webhook-secrets')
  const secrets = file === undefined ? {} : secretsIn(file)
  const common = (given.env.MILLPOND_WEBHOOK_SECRET ?? '').split(/\s+/).filter((secret) => secret !== '')
  return (option, queue) => {
    const own = (Object.hasOwn(secrets, queue) ? secrets[queue] : undefined) ?? common
    if (own.length > 0) return own
    throw new UsageError(`${option}: ${queue} has no secret; give one by --webhook-secrets or MILLPOND_WEBHOOK_SECRET`)
  }
}

function secretsIn(file: string): Record<string, string[]> {
  const text = content('--webhook-secrets', file)
  const wrong = () => new UsageError(`--webhook-secrets: ${file} is not JSON such as { "emails": "whsec_…" }`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw wrong()
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong()
  const entries = Object.entries(value).map(([queue, given]: [string, unknown]): [string, string[]] => {
    const list: unknown[] = Array.isArray(given) ? given : [given]
    if (list.length === 0 || !list.every((one) => typeof one === 'string')) throw wrong()
    return [queue, list]
  })
  return Object.fromEntries(entries)
}

function keyOf(queue: string, secret: string): Buffer {
  const key = signingKey(secret)
  if (key !== undefined) return key
  throw new UsageError(`the webhook secret of ${queue} is not whsec_ and 24 to 64 bytes in base64`)
}
