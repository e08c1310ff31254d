/** The settings of `millpond serve`, from the command line, the environment and files. Secrets come only from the latter two. */

import { lookup } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { parseArgs } from 'node:util'
import type { Delivery } from '../serve/delivery.ts'
import { tokenFault } from '../serve/guard.ts'
import { signingKey } from '../serve/signature.ts'
import { DEFAULTS } from '../values/contract-defaults.ts'
import { LONGEST_TIMER, milliseconds, shown } from '../values/duration.ts'
import { LARGEST_PAYLOAD } from '../values/encoding.ts'
import { checkQueueName } from '../values/names.ts'
import { defined } from '../values/options.ts'
import { isError } from '../values/realms.ts'
import { safeText } from '../values/safe-error.ts'

/** A wrong call of the program. It ends with 2; other errors end it with 1. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export const SERVE_HELP = `millpond serve --store URL [options]: the queue for every language, over HTTP

  --store URL               sqlite:jobs.db, memory:, redis://…, postgres://…; or MILLPOND_STORE
  --port N                  8080 unless given; 0: any that is free
  --host ADDRESS            127.0.0.1 unless given; one that others can reach needs a token
  --token-file FILE         tokens, one a line, each of 16 characters at least; or MILLPOND_TOKEN
  --allow-host NAME         a further name that Host may have where there is no token; repeatable

  --deliver QUEUE=URL       delivers the queue to a webhook; repeatable
  --webhook-secrets FILE    JSON: { "QUEUE": "whsec_…" or ["whsec_new…", "whsec_old…"] }; or MILLPOND_WEBHOOK_SECRET,
                            one or more for all, with spaces between them
  --deliver-concurrency N   requests to each webhook at once; 10 unless given
  --deliver-timeout TIME    how long a webhook may take to answer; 20s unless given
  --deliver-insecure        allows http: to other machines

  --max-body BYTES          of a request; 2097152 unless given
  --max-payload BYTES       of a job's data, result or progress; 1048576 unless given, 16 MiB at most
  --max-wait TIME           longest wait of a claim or a long poll; 60s unless given
  --max-waiting N           requests of a kind that wait at once; 1000 unless given
  --max-waiting-per-client N
                            those of one address; half of --max-waiting unless given. Behind a proxy, give all
  --max-queues N            most queues that clients may make; 10000 unless given
  --max-connections N       1024 unless given
  --stop-timeout TIME       how long what is under way may take after SIGTERM or SIGINT; 30s unless given
  --log-requests            a line for every answer
  --json                    lines of JSON

Times are such as 250ms, 30s, 5m, 1h. The API is described at /openapi.json and in docs/serve.md.
`

/** See `serveSettings`. */
export type ServeSettings = Exclude<Awaited<ReturnType<typeof serveSettings>>, undefined>

const TEXT = { type: 'string' } as const
const TEXTS = { type: 'string', multiple: true } as const
const FLAG = { type: 'boolean' } as const
const HELP = { type: 'boolean', short: 'h' } as const
/** As `SERVE_HELP` explains them. */
export const OPTIONS = {
  ...{ store: TEXT, port: TEXT, host: TEXT, 'token-file': TEXT, 'allow-host': TEXTS },
  ...{ deliver: TEXTS, 'webhook-secrets': TEXT, 'deliver-concurrency': TEXT, 'deliver-timeout': TEXT },
  ...{ 'deliver-insecure': FLAG, 'max-body': TEXT, 'max-payload': TEXT, 'max-wait': TEXT, 'max-waiting': TEXT },
  ...{ 'max-waiting-per-client': TEXT, 'max-queues': TEXT, 'max-connections': TEXT, 'stop-timeout': TEXT },
  ...{ 'log-requests': FLAG, json: FLAG, help: HELP },
} as const

type Environment = Readonly<Record<string, string | undefined>>

/** @returns undefined for `--help` @throws UsageError */
export async function serveSettings(args: readonly string[], env: Environment) {
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
  const MIB = 1024 * 1024
  return {
    ...{ store, address, tokens, hosts: given['allow-host'] ?? [], deliveries: deliveriesOf(given, env) },
    port: whole(given, 'port', 0, 65_535) ?? 8080,
    limits: defined({
      maxBody: whole(given, 'max-body', 1, 512 * MIB),
      maxPayload: whole(given, 'max-payload', 1, LARGEST_PAYLOAD),
      maxWait: time(given, 'max-wait', 0),
      maxWaiting: whole(given, 'max-waiting', 0, 1_000_000),
      maxWaitingPerClient: whole(given, 'max-waiting-per-client', 0, 1_000_000),
      maxQueues: whole(given, 'max-queues', 0, 1_000_000),
    }),
    connections: defined({ maxConnections: whole(given, 'max-connections', 1, 1_000_000) }),
    stopTimeout: time(given, 'stop-timeout', 0) ?? 30_000,
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

/** Node repeats an argument that it does not understand, which may be a store's URL or a token. */
function parseFault(error: unknown): string {
  const code = codeOf(error)
  if (code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL') return 'there is an argument that belongs to no option'
  if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return safeText(error)
  const [option] = /--?[a-z-]{1,30}(?=')/.exec(safeText(error)) ?? []
  return option === undefined ? 'there is an option that is not known' : `there is no option ${option}`
}

function codeOf(error: unknown): string | undefined {
  return isError(error) && 'code' in error ? String(error.code) : undefined
}

type TextOption = { [Name in keyof Given]-?: Given[Name] extends string | undefined ? Name : never }[keyof Given]

function whole(given: Given, option: TextOption, least: number, most: number): number | undefined {
  const text = given[option]
  if (text === undefined) return undefined
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (number >= least && number <= most) return number
  throw new UsageError(`--${option} is a whole number from ${least} to ${most}, not ${shown(text)}`)
}

/** Milliseconds. */
function time(given: Given, option: TextOption, least: number): number | undefined {
  const text = given[option]
  if (text === undefined) return undefined
  return orUsageError('', () =>
    milliseconds(/^\d+$/.test(text) ? Number(text) : text, `--${option}`, least, LONGEST_TIMER),
  )
}

/** Makes a wrong option of the library one of the command line. */
function orUsageError<T>(where: string, check: () => T): T {
  try {
    return check()
  } catch (error) {
    throw new UsageError(`${where}${safeText(error)}`)
  }
}

async function addressOf(host: string): Promise<string> {
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

function isLoopback(address: string): boolean {
  return LOOPBACK.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

function tokensOf(file: string | undefined, env: Environment): string[] {
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

function deliveriesOf(given: Given, env: Environment): Delivery[] {
  const file = given['webhook-secrets']
  const secrets = file === undefined ? {} : secretsIn(file)
  const common = (env.MILLPOND_WEBHOOK_SECRET ?? '').split(/\s+/).filter((secret) => secret !== '')
  const concurrency = whole(given, 'deliver-concurrency', 1, 10_000) ?? DEFAULTS.webhook.concurrency
  const timeout = time(given, 'deliver-timeout', 1) ?? DEFAULTS.webhook.timeout
  const deliveries = new Map<string, Delivery>()
  for (const target of given.deliver ?? []) {
    const { queue, url } = targetOf(target, given['deliver-insecure'] ?? false)
    if (deliveries.has(queue)) throw new UsageError(`--deliver: ${queue} is delivered twice`)
    const own = Object.hasOwn(secrets, queue) ? secrets[queue] : undefined
    const keys = (own ?? common).map((secret) => keyOf(queue, secret))
    const give = 'give one by --webhook-secrets or MILLPOND_WEBHOOK_SECRET'
    if (keys.length === 0) throw new UsageError(`--deliver: ${queue} has no secret; ${give}`)
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
  if (url.username !== '' || url.password !== '') {
    throw new UsageError(`--deliver: the URL of ${queue} holds a password`)
  }
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
