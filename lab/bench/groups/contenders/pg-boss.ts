/**
 * pg-boss with `groupConcurrency`, which its documentation says may be exceeded for a moment. Otherwise as in `../pg-boss.ts`: one worker that fetches 500 jobs
 * at a time, and works on them with as many slots as the others have. A job is active, and counts in its group, until all that were fetched with it are done.
 */
import { PgBoss } from 'pg-boss'
import { inBulks, QUEUE } from '../bulks.ts'
import type { OpenGrouped } from '../contender.ts'

/** In seconds, the least that it takes. */
const POLL = 0.5
const BATCH = 500

export const open: OpenGrouped = async ({ url, concurrency, limit }) => {
  const boss = new PgBoss({ connectionString: url })
  boss.on('error', console.error)
  await boss.start()
  await boss.createQueue(QUEUE)
  return {
    fill: (groups) =>
      inBulks(groups, (bulk) =>
        boss.insert(
          QUEUE,
          bulk.map((id) => ({ group: { id } })),
        ),
      ),
    work(handler) {
      const options = {
        ...{ batchSize: BATCH, pollingIntervalSeconds: POLL, groupConcurrency: limit },
        // With a limit, batches often come short although jobs wait.
        ...{ burstWhenBatchFull: true, burstWhenReadyExceeds: 1, includeMetadata: true as const },
      }
      void boss.work(QUEUE, options, async (jobs) => {
        const waiting = jobs.map(({ groupId }) => groupId ?? '')
        const slot = async () => {
          for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) await handler(group)
        }
        await Promise.all(Array.from({ length: concurrency }, slot))
      })
    },
  }
}
