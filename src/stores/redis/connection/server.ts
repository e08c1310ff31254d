/** Checks that the server is one that keeps what it is given, when the store opens and while it is open. */
import { MillpondError } from '../../../values/errors/errors.ts'
import { toMillpondError } from '../../redis-client/errors.ts'
import type { Client } from '../../redis-client/settings.ts'

const OLDEST = [6, 2] as const
/** Servers without an append-only file for which this process has given its warning. */
const warned = new Set<string>()

/** Checks version, eviction policy and persistence of every master. @throws StoreUnavailable */
export async function checkServer(client: Client, where: string): Promise<void> {
  const nodes = mastersOf(client)
  if (nodes.length === 0) throw new MillpondError('StoreUnavailable', `the cluster at ${where} has no master`)
  for (const node of nodes) {
    try {
      const info = await node.info()
      const field = (name: string) => fieldOf(info, name)
      checkVersion(field('redis_version') ?? '', where)
      const policy = evicting(info)
      if (policy !== undefined) throw new MillpondError('StoreUnavailable', evictionText(policy, where))
      if (field('aof_enabled') !== '1') warnOfPersistence(where)
    } catch (error) {
      throw toMillpondError(error, where)
    }
  }
}

/** @param version of Redis. Valkey tells the version of Redis that it is compatible with here, and its own in another field */
function checkVersion(version: string, where: string): void {
  if (!isTooOld(version)) return
  const message = `Redis ${version} at ${where} is too old: the store needs ${OLDEST.join('.')} or later, or Valkey`
  throw new MillpondError('StoreUnavailable', message)
}

export function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])
}

export const mastersOf = (client: Client) => ('nodes' in client ? client.nodes('master') : [client])

export const fieldOf = (info: string, name: string): string | undefined =>
  new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim()

/** @returns the policy by which the server drops keys; undefined: it drops none */
export function evicting(info: string): string | undefined {
  const policy = fieldOf(info, 'maxmemory_policy') ?? 'noeviction'
  return Number(fieldOf(info, 'maxmemory') ?? 0) === 0 || policy === 'noeviction' ? undefined : policy
}

const evictionText = (policy: string, where: string): string =>
  `Redis at ${where} would drop jobs when its memory is full (maxmemory-policy ${policy}): ` +
  'set maxmemory-policy to noeviction, or use another server for queues'

/** Milliseconds between two looks. */
const LOOK_PAUSE = 10_000

/** The policy may be set while the server runs: sweeps look at it. */
export class EvictionWatch {
  #lookedAt = Number.NEGATIVE_INFINITY
  #policy: string | undefined

  /** Warns once for each time that a policy is set. Never rejects: a server that does not answer is told of elsewhere. */
  async look(client: Client, where: string): Promise<void> {
    if (performance.now() < this.#lookedAt + LOOK_PAUSE) return
    this.#lookedAt = performance.now()
    const looks = await Promise.allSettled(mastersOf(client).map(async (node) => evicting(await node.info('memory'))))
    const policies = looks.map((look) => (look.status === 'fulfilled' ? look.value : undefined))
    const policy = policies.find((one) => one !== undefined)
    if (policy !== undefined && this.#policy === undefined) {
      process.emitWarning(evictionText(policy, where), { type: 'MillpondWarning', code: 'RedisEviction' })
    }
    // While a server does not answer, what was seen there last may still hold.
    if (policy !== undefined || looks.every(({ status }) => status === 'fulfilled')) this.#policy = policy
  }
}

function warnOfPersistence(where: string): void {
  if (warned.has(where)) return
  warned.add(where)
  process.emitWarning(
    `Redis at ${where}: no append-only file: a crash of the server loses everything since its last snapshot, ` +
      'acknowledged or not (set appendonly yes)',
    { type: 'MillpondWarning', code: 'RedisPersistence' },
  )
}
