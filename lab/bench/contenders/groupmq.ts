/** GroupMQ, whose groups run one job at a time, and no other limit is to be had. It has no call for many jobs. */
import { Queue, Worker } from 'groupmq'
import { Redis } from 'ioredis'
import type { Item, Line, Open } from '../contender.ts'
import { Tally } from '../tally.ts'

export const open: Open = async ({ url, concurrency, limit }) => {
  if (limit !== 1) throw new Error('a group of GroupMQ runs one job at a time')
  const redis = new Redis(url, { maxRetriesPerRequest: null })
  return {
    line(name, handler): Line {
      const queue = new Queue<Item>({ redis, namespace: name })
      const handled = new Tally()
      let worker: Worker<Item> | undefined
      return {
        push: (data) => queue.add({ groupId: data.group ?? '', data }),
        pushMany: undefined,
        work() {
          worker = new Worker<Item>({ queue, concurrency, handler: (job) => handler(job.data) })
          worker.on('error', console.error)
          worker.on('completed', () => handled.add())
          void worker.run()
        },
        settled: (total) => handled.reaches(total),
        async stop() {
          await worker?.close()
        },
      }
    },
    async close() {
      redis.disconnect()
    },
  }
}
