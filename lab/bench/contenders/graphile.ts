/**
 * Graphile Worker, as its page on performance sets it up: a local queue of 500, completions in batches without delay; and
 * without the local queue, completions in batches still. A completed job is deleted, always.
 */
import { Logger, makeWorkerUtils, runTaskList, type WorkerPool } from 'graphile-worker'
import pg from 'pg'
import type { Item, Line, Open, Setting } from '../contender.ts'
import { emptied } from '../emptied.ts'
import { Tally } from '../tally.ts'

/** Its documented performance figures come from this size. */
const LOCAL_QUEUE = 500
const BATCHES = { completeJobBatchDelay: 0, failJobBatchDelay: 0 }
/** Of 5, 10, 20 and 52 (its documentation asks for two more than slots), 10 and 20 push fastest, and 20 drains no slower than 52. */
const CONNECTIONS = 20
const silent = new Logger(() => () => {})

// It logs every success otherwise; its own performance test sets this.
process.env.NO_LOG_SUCCESS = '1'

/**
 * A group is a named queue, which runs one job at a time; Graphile Worker has no other limit. Groups are measured without the local queue:
 * its worker takes many jobs in advance, and each of them keeps its named queue locked.
 */
const queueOf = ({ group }: Item) => (group === undefined ? {} : { queueName: group })

export const plain: Open = (setting) => open(setting, BATCHES)
export const local: Open = (setting) => open(setting, { localQueue: { size: LOCAL_QUEUE }, ...BATCHES })

async function open({ url, concurrency, limit = 1 }: Setting, batching: GraphileConfig.WorkerOptions) {
  if (limit !== 1) throw new Error('a named queue of Graphile Worker runs one job at a time')
  const pgPool = new pg.Pool({ connectionString: url, max: CONNECTIONS })
  pgPool.on('error', console.error)
  pgPool.on('connect', (client) => client.on('error', console.error))
  const utils = await makeWorkerUtils({ pgPool, logger: silent })
  await utils.migrate()
  return {
    line(name: string, handler: (item: Item) => Promise<void>): Line {
      const handled = new Tally()
      let pool: WorkerPool | undefined
      return {
        push: (item) => utils.addJob(name, item),
        pushMany: (items) =>
          utils.addJobs(items.map((payload) => ({ identifier: name, payload, ...queueOf(payload) }))),
        work() {
          const task = async (payload: unknown) => {
            handled.add()
            await handler(payload as Item)
          }
          const worker = { ...batching, concurrentJobs: concurrency }
          pool = runTaskList(
            { preset: { worker }, pgPool, logger: silent, noHandleSignals: true },
            { [name]: task },
            pgPool,
          )
        },
        async settled(total) {
          await handled.reaches(total)
          // The table holds live jobs alone, so that this reads next to nothing when they are done.
          await emptied(
            pgPool,
            `select 1 from graphile_worker._private_jobs job join graphile_worker._private_tasks task
             on task.id = job.task_id where task.identifier = '${name}' limit 1`,
          )
        },
        async stop() {
          await pool?.gracefulShutdown()
        },
      }
    },
    async close() {
      await utils.release()
      await pgPool.end()
    },
  }
}
