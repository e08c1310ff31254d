/** Checks that the server is one that keeps what it is given. */
import { MillpondError } from '../../../values/errors.ts'
import { toMillpondError } from '../../redis-client/errors.ts'
import type { Client } from '../../redis-client/settings.ts'

const OLDEST = [6, 2] as const
/** Servers without an append-only file for which this process has given its warning. */
const warned = new Set<string>()

/** Checks version, eviction policy and persistence of every master. @throws StoreUnavailable */
export async function checkServer(client: Client, where: string): Promise<void> {
  const nodes = 'nodes' in client ? client.nodes('master') : [client]
  if (nodes.length === 0) throw new MillpondError('StoreUnavailable', `the cluster at ${where} has no master`)
  for (const node of nodes) {
    try {
      const info = await node.info()
      const field = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim()
      checkVersion(field('redis_version') ?? '', where)
      checkEviction(Number(field('maxmemory') ?? 0), field('maxmemory_policy') ?? 'noeviction', where)
      if (field('aof_enabled') !== '1') warnOfPersistence(where)
    } catch (error) {
      throw toMillpondError(error, where)
    }
  }
}

/** @param version of Valkey: the one of Redis that it is compatible with; it tells its own apart */
function checkVersion(version: string, where: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return
  const message = `Redis ${version} at ${where} is too old: the store needs ${OLDEST.join('.')} or later, or Valkey`
  throw new MillpondError('StoreUnavailable', message)
}

function checkEviction(most: number, policy: string, where: string): void {
  if (most === 0 || policy === 'noeviction') return
  const message = `Redis at ${where} would drop jobs when its memory is full (maxmemory-policy ${policy}): set maxmemory-policy to noeviction, or use another server for queues`
  throw new MillpondError('StoreUnavailable', message)
}

function warnOfPersistence(where: string): void {
  if (warned.has(where)) return
  warned.add(where)
  process.emitWarning(
    `Redis at ${where}: no append-only file: a crash of the server loses everything since its last snapshot, acknowledged or not (set appendonly yes)`,
    { type: 'MillpondWarning', code: 'RedisPersistence' },
  )
}
