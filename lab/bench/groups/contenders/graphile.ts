/**
 * Graphile Worker with a named queue for each group: a named queue runs one job at a time, and no other limit is to be had. Its local queue is left out, since
 * with it a worker takes many jobs in advance, each of which keeps its named queue locked.
 */
import { Logger, makeWorkerUtils, runTaskList } from 'graphile-worker'
import pg from 'pg'
import { inBulks, QUEUE } from '../bulks.ts'
import type { OpenGrouped } from '../contender.ts'

/** As in `../graphile.ts`. */
const CONNECTIONS = 20
const BATCHES = { completeJobBatchDelay: 0, failJobBatchDelay: 0 }
const silent = new Logger(() => () => {})
process.env.NO_LOG_SUCCESS = '1'

export const open: OpenGrouped = async ({ url, concurrency, limit }) => {
  if (limit !== 1) throw new Error('a named queue of Graphile Worker runs one job at a time')
  const pgPool = new pg.Pool({ connectionString: url, max: CONNECTIONS })
  pgPool.on('error', console.error)
  pgPool.on('connect', (client) => client.on('error', console.error))
  const utils = await makeWorkerUtils({ pgPool, logger: silent })
  await utils.migrate()
  return {
    fill: (groups) =>
      inBulks(groups, (bulk) =>
        utils.addJobs(bulk.map((group) => ({ identifier: QUEUE, queueName: group, payload: { group } }))),
      ),
    work(handler) {
      const worker = { ...BATCHES, concurrentJobs: concurrency }
      const task = (payload: unknown) => handler((payload as { group: string }).group)
      runTaskList({ preset: { worker }, pgPool, logger: silent, noHandleSignals: true }, { [QUEUE]: task }, pgPool)
    },
  }
}
