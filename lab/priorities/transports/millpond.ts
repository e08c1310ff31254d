/** Millpond with priorities alone, and with slots kept for urgent jobs. */
import { Millpond, type WorkOptions } from '../../../src/index.ts'
import type { Message } from '../messages.ts'
import { RESERVE, URGENT_PRIORITY } from '../settings.ts'
import type { Transport } from '../transport.ts'

const QUEUE = 'reports'

function transport(options: WorkOptions): Transport {
  return {
    async produce(url) {
      const pond = await Millpond.open(url)
      const queue = pond.queue<Message>(QUEUE)
      return {
        push: (message, priority) => queue.push(message, { priority }),
        async close() {
          await pond.close()
        },
      }
    },
    async consume(url, slots, handler) {
      const pond = await Millpond.open(url)
      pond.queue<Message>(QUEUE).work((job) => handler(job.data), { ...options, concurrency: slots })
    },
  }
}

export const plain = transport({})
export const lane = transport({ lanes: [{ minPriority: URGENT_PRIORITY, reserve: RESERVE }] })
