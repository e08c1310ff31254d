/** GroupMQ, whose groups run one job at a time, and no other limit is to be had. It has no call for many jobs: so many are pushed at once. */
import { Queue, Worker } from 'groupmq'
import { Redis } from 'ioredis'
import { QUEUE } from '../bulks.ts'
import type { OpenGrouped } from '../contender.ts'

const IN_FLIGHT = 100

export const open: OpenGrouped = async ({ url, concurrency, limit }) => {
  if (limit !== 1) throw new Error('a group of GroupMQ runs one job at a time')
  const redis = new Redis(url, { maxRetriesPerRequest: null })
  const queue = new Queue<null>({ redis, namespace: QUEUE })
  return {
    async fill(groups) {
      const waiting = [...groups].reverse()
      const loop = async () => {
        for (let groupId = waiting.pop(); groupId !== undefined; groupId = waiting.pop())
          await queue.add({ groupId, data: null })
      }
      await Promise.all(Array.from({ length: IN_FLIGHT }, loop))
    },
    work(handler) {
      const worker = new Worker<null>({ queue, concurrency, handler: (job) => handler(job.groupId) })
      worker.on('error', console.error)
      void worker.run()
    },
  }
}
