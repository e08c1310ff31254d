/** What the ends of jobs write to the append-only file of Redis. */
import { openStore } from '../../src/stores/open.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { claim } from '../conformance/suite.ts'
import type { RedisServer } from '../servers/redis.ts'

const sizeOf = async (server: RedisServer): Promise<number> =>
  Number(/aof_current_size:(\d+)/.exec(await server.command('info', 'persistence'))?.[1])

/** Pushes the jobs as a whole. @returns bytes for each of `count` jobs of the queue `fan` that are claimed and done, one a call */
export async function bytesOfEnds(server: RedisServer, jobs: readonly NewJob[], count: number): Promise<number> {
  const store = await openStore(server.url, {})
  const end = async () => {
    const held = (await claim(store, { queue: 'fan', limit: 1 })).jobs
    await store.operations.complete({ queue: 'fan', items: held.map((job) => ({ ...job, claim: job, result: null })) })
  }
  try {
    await store.operations.push({ jobs, whole: true })
    // The first one brings the scripts.
    await end()
    const before = await sizeOf(server)
    for (let n = 1; n < count; n++) await end()
    return ((await sizeOf(server)) - before) / (count - 1)
  } finally {
    await store.close()
  }
}
