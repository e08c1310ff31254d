/**
 * BullMQ: one Queue and one Worker, each with the connections that it makes itself. Its documentation names one setting for
 * speed, the worker's `concurrency`. ioredis's `enableAutoPipelining` was tried: pushes gain nothing by it, and it halves the
 * drain. Finished jobs stay for ever unless told otherwise; told to the worker, that takes no room in each job.
 */
import { Queue, Worker } from 'bullmq'
import type { Handler, Item, Line, Open, Setting } from '../contender.ts'
import { Tally } from '../tally.ts'

const HOUR = 3600

export const open: Open = async (setting) => {
  const lines: { close(): Promise<void> }[] = []
  return {
    line(name, handler) {
      const made = line(name, handler, setting)
      lines.push(made)
      return made
    },
    async close() {
      await Promise.all(lines.map((each) => each.close()))
    },
  }
}

function line(
  name: string,
  handler: Handler,
  { url, concurrency, forget }: Setting,
): Line & { close(): Promise<void> } {
  const { hostname, port } = new URL(url)
  const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null }
  const queue = new Queue<Item>(name, { connection })
  const completed = new Tally()
  let worker: Worker<Item> | undefined
  return {
    push: (item) => queue.add('job', item),
    pushMany: (items) => queue.addBulk(items.map((data) => ({ name: 'job', data }))),
    work() {
      worker = new Worker<Item>(name, (job) => handler(job.data), {
        connection,
        concurrency,
        removeOnComplete: forget ? { count: 0 } : { age: HOUR },
      })
      worker.on('error', console.error)
      // Emitted when Redis has answered that the job is completed.
      worker.on('completed', () => completed.add())
    },
    settled: (total) => completed.reaches(total),
    async stop() {
      await worker?.close()
    },
    close: () => queue.close(),
  }
}
