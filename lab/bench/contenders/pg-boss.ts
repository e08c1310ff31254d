/**
 * pg-boss. Polling at its least interval, or woken by NOTIFY, which costs pushes. A worker fetches `batchSize` jobs, hands all of
 * them to one handler and completes them in one call; with `burstWhenBatchFull` it fetches anew at once while batches come
 * full. Workers that take single jobs (`localConcurrency: 50`) wait out the polling interval after each: 100 jobs/s. So the batch is
 * as large as ours at most, and its handler works on it with as many slots as the others have.
 */

import pg from 'pg'
import { PgBoss } from 'pg-boss'
import type { Contender, Handler, Item, Line, Open, Setting } from '../contender.ts'
import { emptied } from '../emptied.ts'
import { Tally } from '../tally.ts'

/** In seconds, the least that it takes. */
const POLL = 0.5
/** How long finished jobs stay, in seconds. It cannot delete them as they complete. */
const KEEP = 3600
/** Its default; 20 and 52 push no faster. */
const CONNECTIONS = 10
/** Of 50, 125, 250 and 500, with 1 to 5 workers, this and two of 250 are the fastest. */
const BATCH = 500

/**
 * A job counts in its group until all jobs that were fetched with it are done, so batches often come short although jobs wait.
 * The documentation of pg-boss says that `groupConcurrency` may be exceeded for a moment.
 */
const limited = (limit?: number) => (limit === undefined ? {} : { groupConcurrency: limit, burstWhenReadyExceeds: 1 })

export const polling: Open = (setting) => open(setting, false)
export const notified: Open = (setting) => open(setting, true)

async function open({ url, concurrency, limit }: Setting, notify: boolean): Promise<Contender> {
  const boss = new PgBoss({ connectionString: url, max: CONNECTIONS, useListenNotify: notify })
  boss.on('error', console.error)
  await boss.start()
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  pool.on('error', console.error)
  return {
    line(name, handler): Line {
      // A queue must exist before its first job.
      const ready = boss.createQueue(name, { notify, deleteAfterSeconds: KEEP })
      const handled = new Tally()
      let working: Promise<unknown> | undefined
      return {
        async push(item) {
          await ready
          await boss.send(name, item)
        },
        async pushMany(items) {
          await ready
          await boss.insert(
            name,
            items.map((data) => ({ data, ...(data.group === undefined ? {} : { group: { id: data.group } }) })),
          )
        },
        work() {
          const options = {
            batchSize: BATCH,
            pollingIntervalSeconds: POLL,
            burstWhenBatchFull: true,
            ...limited(limit),
          }
          working = ready.then(() =>
            boss.work<Item>(name, options, async (jobs) => {
              await inSlots(
                jobs.map(({ data }) => data),
                handler,
                concurrency,
              )
              handled.add(jobs.length)
            }),
          )
        },
        async settled(total) {
          await handled.reaches(total)
          await emptied(pool, `select 1 from pgboss.job where name = '${name}' and state < 'completed' limit 1`)
        },
        async stop() {
          await working
          await boss.offWork(name)
        },
      }
    },
    async close() {
      await boss.stop({ graceful: false })
      await pool.end()
    },
  }
}

async function inSlots(items: readonly Item[], handler: Handler, slots: number): Promise<void> {
  let next = 0
  const slot = async () => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await handler(item)
  }
  await Promise.all(Array.from({ length: slots }, slot))
}
