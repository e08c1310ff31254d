/** Checks that the server is one that keeps what it is given. */
import { MillpondError } from '../../../errors.ts'
import { toMillpondError } from '../errors.ts'
import type { Client } from '../settings.ts'

const OLDEST = [6, 2] as const
/** Servers of which this process has been told already that they write nothing down. */
const warned = new Set<string>()

/** @throws StoreUnavailable */
export async function checkServer(client: Client, where: string): Promise<void> {
  const nodes = 'nodes' in client ? client.nodes('master') : [client]
  if (nodes.length === 0) throw new MillpondError('StoreUnavailable', `the cluster at ${where} has no master`)
  for (const node of nodes) {
    try {
      const sections = [await node.info('server'), await node.info('memory'), await node.info('persistence')]
      const fields = fieldsOf(sections.join('\r\n'))
      checkVersion(fields, where)
      checkEviction(fields, where)
      checkPersistence(fields, where)
    } catch (error) {
      throw toMillpondError(error, where)
    }
  }
}

function fieldsOf(info: string): Map<string, string> {
  const lines = info.split('\r\n').filter((line) => line.includes(':'))
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

function checkVersion(fields: ReadonlyMap<string, string>, where: string): void {
  // Valkey tells its own version apart, and here the one of Redis that it is compatible with.
  const version = fields.get('redis_version') ?? ''
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return
  const message = `Redis ${version} at ${where} is too old: the store needs ${OLDEST.join('.')} or later, or Valkey`
  throw new MillpondError('StoreUnavailable', message)
}

function checkEviction(fields: ReadonlyMap<string, string>, where: string): void {
  const policy = fields.get('maxmemory_policy') ?? 'noeviction'
  const most = Number(fields.get('maxmemory') ?? 0)
  if (most === 0 || policy === 'noeviction') return
  const message =
    `Redis at ${where} would drop jobs when its memory is full (maxmemory-policy ${policy}): ` +
    'set maxmemory-policy to noeviction, or use another server for queues'
  throw new MillpondError('StoreUnavailable', message)
}

function checkPersistence(fields: ReadonlyMap<string, string>, where: string): void {
  if (fields.get('aof_enabled') === '1' || warned.has(where)) return
  warned.add(where)
  process.emitWarning(
    `Redis at ${where}: no append-only file: a crash of the server loses everything since its last snapshot, acknowledged or not (set appendonly yes)`,
    { type: 'MillpondWarning', code: 'RedisPersistence' },
  )
}
