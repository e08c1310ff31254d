/**
 * plainjob over better-sqlite3, everything in this process: it calls SQLite on the main thread. A worker of it runs one job
 * at a time, so `concurrency` workers are started. It sets `synchronous` itself, to NORMAL; where FULL is measured it is
 * set back after that, on the same connection.
 */
import Database from 'better-sqlite3'
import { better, defineQueue, defineWorker, type Logger } from 'plainjob'
import type { Handler, Item, Line, Open } from '../contender.ts'

const silent: Logger = { error: console.error, warn() {}, info() {}, debug() {} }

export const open: Open = async ({ url, concurrency }) => {
  const { pathname, searchParams } = new URL(url)
  const database = new Database(decodeURI(pathname))
  const queue = defineQueue({ connection: better(database), logger: silent })
  database.pragma(`synchronous = ${searchParams.get('sync')}`)
  return {
    line: (name, handler) => line(queue, name, handler, concurrency),
    async close() {
      queue.close()
    },
  }
}

function line(queue: ReturnType<typeof defineQueue>, name: string, handler: Handler, concurrency: number): Line {
  let completed = 0
  let reached: (() => void) | undefined
  let awaited = Number.POSITIVE_INFINITY
  const workers: ReturnType<typeof defineWorker>[] = []
  const onCompleted = () => {
    if (++completed >= awaited) reached?.()
  }
  return {
    async push(item) {
      queue.add(name, item)
    },
    async pushMany(items) {
      queue.addMany(name, items)
    },
    work() {
      const run = (job: { data: string }) => handler(JSON.parse(job.data) as Item)
      for (let i = 0; i < concurrency; i++) {
        const worker = defineWorker(name, run, { queue, logger: silent, onCompleted })
        workers.push(worker)
        void worker.start()
      }
    },
    settled(total) {
      awaited = total
      if (completed >= total) return Promise.resolve()
      return new Promise((resolve) => {
        reached = resolve
      })
    },
    async stop() {
      await Promise.all(workers.map((worker) => worker.stop()))
    },
  }
}
