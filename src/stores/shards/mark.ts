/**
 * Each store says which of how many it is, in a schedule that never fires. So a process that names the stores in another order, or another
 * number of them, is refused before it looks for jobs where they are not.
 */
import type { Store } from '../../store.ts'
import { isMillpondError, MillpondError } from '../../values/errors/errors.ts'

export const MARK = 'millpond.shards'

/** @throws ShardMismatch, and as the operations of the store */
export async function checkMark(store: Store, shard: number, count: number, route: (queue: string) => number) {
  const version = `${shard + 1}/${count}`
  const name = `shard ${shard + 1} of ${count}`
  const records = await store.operations.schedules({ limit: 1, name: MARK }).catch(unlessForbidden)
  if (records === undefined) return
  const [found] = records
  if (found === undefined) {
    const stray = (await store.operations.stats({})).find(({ queue }) => route(queue) !== shard)
    if (stray !== undefined) {
      const why = `the queue ${stray.queue} is in it, which belongs to shard ${route(stray.queue) + 1}`
      throw mismatch(`${name} was in use before: ${why}. millpond move carries its queues to new stores`)
    }
    await store.operations.declare({ schedules: [declaration(version)] })
  } else if (found.version !== version) {
    throw mismatch(`${name} was opened as shard ${found.version.replace('/', ' of ')} before`)
  }
}

/** A PostgreSQL role for producers may not read schedules: others check, then. */
function unlessForbidden(error: unknown): undefined {
  if (!isMillpondError(error, 'StoreFailed')) throw error
}

const mismatch = (what: string): MillpondError =>
  new MillpondError('ShardMismatch', `${what}. Every process names the same stores in the same order: docs/shards.md`)

const declaration = (version: string) => ({
  ...{ name: MARK, version, paused: true, again: false },
  ...{ when: 'every 1d', tz: 'UTC', missed: 'skip' as const, jitter: 0, from: null, until: null },
  job: {
    ...{ queue: MARK, priority: 4, key: null, group: null, cost: 1, attempts: null, timeout: null },
    data: { encoding: 'json' as const, body: JSON.stringify({ shard: version }) },
  },
})
