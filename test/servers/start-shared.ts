/** Starts those of the shared servers that are asked for and that the environment does not name already. */

import { startPgBouncer } from './pgbouncer.ts'
import { startPostgres } from './postgres.ts'
import { startRabbitmq } from './rabbitmq.ts'
import { startRedis } from './redis.ts'
import { startRedisCluster } from './redis-cluster.ts'
import { type SharedServer, serverUrl } from './shared.ts'

export interface SharedStart {
  /** The URLs of what was started. */
  urls: ReadonlyMap<SharedServer, string>
  /** Why the others could not be. */
  missing: ReadonlyMap<SharedServer, string>
  stop(): Promise<void>
}

interface Started {
  url: string
  stop(): Promise<void>
}

export async function startShared(names: readonly SharedServer[]): Promise<SharedStart> {
  const wanted = new Set(names.filter((name) => serverUrl(name) === undefined))
  const running = new Map<SharedServer, Started>()
  const missing = new Map<SharedServer, string>()
  const start = async (name: SharedServer, starting: () => Promise<Started>) => {
    if (!wanted.has(name)) return
    try {
      running.set(name, await starting())
    } catch (error) {
      missing.set(name, error instanceof Error ? error.message : String(error))
    }
  }
  let behind = serverUrl('postgres')
  // PgBouncer alone makes no sense.
  if (wanted.has('pgbouncer') && behind === undefined) wanted.add('postgres')
  await Promise.all([
    start('redis', startRedis),
    start('redis-cluster', startRedisCluster),
    start('postgres', startPostgres),
    start('rabbitmq', startRabbitmq),
  ])
  behind ??= running.get('postgres')?.url
  await start('pgbouncer', () => {
    if (behind === undefined) throw new Error(`it needs PostgreSQL: ${missing.get('postgres')}`)
    return startPgBouncer(behind)
  })
  return {
    urls: new Map([...running].map(([name, { url }]) => [name, url])),
    missing,
    async stop() {
      // First what uses the other.
      await running.get('pgbouncer')?.stop()
      running.delete('pgbouncer')
      await Promise.all([...running.values()].map((each) => each.stop()))
    },
  }
}
