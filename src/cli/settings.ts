/** From the command line, the environment and files to what `serve` is started with; secrets come from the latter two alone. */
import { lookup } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { parseArgs } from 'node:util'
import type { Delivery } from '../serve/delivery.ts'
import { tokenFault } from '../serve/guard.ts'
import type { ServeOptions } from '../serve/index.ts'
import type { ConnectionLimits } from '../serve/limits.ts'
import { signingKey } from '../serve/signature.ts'
import { LONGEST_TIMER, milliseconds, shown } from '../values/duration.ts'
import { checkQueueName } from '../values/names.ts'
import { defined } from '../values/options.ts'
import { safeText } from '../values/safe-error.ts'
import { UsageError } from './usage.ts'

export interface ServeSettings {
  store: string
  /** An IP address. */
  address: string
  port: number
  tokens: string[]
  hosts: string[]
  deliveries: Delivery[]
  limits: Pick<ServeOptions, 'maxBody' | 'maxPayload' | 'maxWait' | 'maxWaiting' | 'maxWaitingPerClient'>
  connections: Partial<Pick<ConnectionLimits, 'maxConnections'>>
  /** Milliseconds. */
  stopTimeout: number
  logRequests: boolean
  json: boolean
}

const OPTIONS = {
  store: { type: 'string' },
  port: { type: 'string' },
  host: { type: 'string' },
  'token-file': { type: 'string' },
  'allow-host': { type: 'string', multiple: true },
  deliver: { type: 'string', multiple: true },
  'webhook-secrets': { type: 'string' },
  'deliver-concurrency': { type: 'string' },
  'deliver-timeout': { type: 'string' },
  'deliver-insecure': { type: 'boolean' },
  'max-body': { type: 'string' },
  'max-payload': { type: 'string' },
  'max-wait': { type: 'string' },
  'max-waiting': { type: 'string' },
  'max-waiting-per-client': { type: 'string' },
  'max-connections': { type: 'string' },
  'stop-timeout': { type: 'string' },
  'log-requests': { type: 'boolean' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

type Environment = Readonly<Record<string, string | undefined>>

/** @returns undefined where help is asked for @throws UsageError */
export async function serveSettings(args: readonly string[], env: Environment): Promise<ServeSettings | undefined> {
  const given = parsed(args)
  if (given.help) return undefined
  const store = given.store ?? env.MILLPOND_STORE
  if (store === undefined || store === '') throw new UsageError('--store is missing, such as --store sqlite:jobs.db')
  const tokens = tokensOf(given['token-file'], env)
  const address = await addressOf(given.host ?? '127.0.0.1')
  if (tokens.length === 0 && !isLoopback(address)) {
    throw new UsageError(
      `${address} can be reached by others: give a token, by --token-file or MILLPOND_TOKEN, or listen on 127.0.0.1`,
    )
  }
  return {
    store,
    address,
    port: whole('--port', given.port, 0, 65_535) ?? 8080,
    tokens,
    hosts: given['allow-host'] ?? [],
    deliveries: deliveriesOf(given, env),
    limits: defined({
      maxBody: whole('--max-body', given['max-body'], 1, 512 * 1024 * 1024),
      maxPayload: whole('--max-payload', given['max-payload'], 1, 512 * 1024 * 1024),
      maxWait: time('--max-wait', given['max-wait'], 0),
      maxWaiting: whole('--max-waiting', given['max-waiting'], 0, 1_000_000),
      maxWaitingPerClient: whole('--max-waiting-per-client', given['max-waiting-per-client'], 0, 1_000_000),
    }),
    connections: defined({ maxConnections: whole('--max-connections', given['max-connections'], 1, 1_000_000) }),
    stopTimeout: time('--stop-timeout', given['stop-timeout'], 0) ?? 30_000,
    logRequests: given['log-requests'] ?? false,
    json: given.json ?? false,
  }
}

type Given = ReturnType<typeof parsed>

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, strict: true, allowPositionals: false }).values
  } catch (error) {
    throw new UsageError(parseFault(error))
  }
}

/** Node repeats an argument that it does not understand. That may be a store's URL or a token. */
function parseFault(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL') return 'there is an argument that belongs to no option'
  if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return safeText(error)
  const [option = ''] = /--?[a-z-]{1,30}(?=')/.exec(safeText(error)) ?? []
  return option === '' ? 'there is an option that is not known' : `there is no option ${option}`
}

function whole(option: string, text: string | undefined, least: number, most: number): number | undefined {
  if (text === undefined) return undefined
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (number >= least && number <= most) return number
  throw new UsageError(`${option} is a whole number from ${least} to ${most}, not ${shown(text)}`)
}

function time(option: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined
  try {
    return milliseconds(/^\d+$/.test(text) ? Number(text) : text, option, least, LONGEST_TIMER)
  } catch (error) {
    throw new UsageError(safeText(error))
  }
}

async function addressOf(host: string): Promise<string> {
  if (isIP(host) !== 0) return host
  try {
    // What is listened on is what was checked: a name may mean something else the next time.
    return (await lookup(host)).address
  } catch {
    throw new UsageError(`--host ${shown(host)} is no address and no name that is known`)
  }
}

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

function isLoopback(address: string): boolean {
  return LOOPBACK.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

function tokensOf(file: string | undefined, env: Environment): string[] {
  const text = file === undefined ? (env.MILLPOND_TOKEN ?? '') : content('--token-file', file)
  const tokens = text.split('\n').map((line) => line.trim())
  const own = tokens.filter((token) => token !== '')
  if (file !== undefined && own.length === 0) throw new UsageError(`--token-file: ${file} holds no token`)
  for (const token of own) {
    const fault = tokenFault(token)
    if (fault !== undefined) throw new UsageError(`${file === undefined ? 'MILLPOND_TOKEN' : '--token-file'}: ${fault}`)
  }
  return own
}

function content(option: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    // Not its name: the secret itself may have been given in its place.
    throw new UsageError(`${option}: the file cannot be read${why}`)
  }
}

function deliveriesOf(given: Given, env: Environment): Delivery[] {
  const targets = given.deliver ?? []
  const file = given['webhook-secrets']
  const secrets = file === undefined ? {} : secretsIn(file)
  const common = (env.MILLPOND_WEBHOOK_SECRET ?? '').split(/\s+/).filter((secret) => secret !== '')
  const concurrency = whole('--deliver-concurrency', given['deliver-concurrency'], 1, 10_000) ?? 10
  const timeout = time('--deliver-timeout', given['deliver-timeout'], 1) ?? 20_000
  const queues = new Set<string>()
  return targets.map((target) => {
    const { queue, url } = targetOf(target, given['deliver-insecure'] ?? false)
    if (queues.has(queue)) throw new UsageError(`--deliver: ${queue} is delivered twice`)
    queues.add(queue)
    const own = Object.hasOwn(secrets, queue) ? secrets[queue] : undefined
    const keys = (own ?? common).map((secret) => keyOf(queue, secret))
    if (keys.length === 0) {
      throw new UsageError(
        `--deliver: ${queue} has no secret; give one by --webhook-secrets or MILLPOND_WEBHOOK_SECRET`,
      )
    }
    return { queue, url, keys, concurrency, timeout }
  })
}

function targetOf(target: string, insecure: boolean): { queue: string; url: URL } {
  const at = target.indexOf('=')
  const [queue, text] = [target.slice(0, at), target.slice(at + 1)]
  // The URL may hold what is secret, so no message shows it.
  if (at < 1 || !URL.canParse(text))
    throw new UsageError('--deliver is QUEUE=URL, such as emails=https://example.org/hook')
  try {
    checkQueueName(queue)
  } catch (error) {
    throw new UsageError(`--deliver: ${safeText(error)}`)
  }
  const url = new URL(text)
  if (url.username !== '' || url.password !== '')
    throw new UsageError(`--deliver: the URL of ${queue} holds a password`)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const isNear = host === 'localhost' || (isIP(host) !== 0 && isLoopback(host))
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && (isNear || insecure))) {
    throw new UsageError(`--deliver: the URL of ${queue} must be https:, or http: with --deliver-insecure`)
  }
  return { queue, url }
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
