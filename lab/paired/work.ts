/** What is done with plain jobs: of a queue without groups, limits, keys, graphs and schedules. */
import type { Queue, Worker } from '../../src/index.ts'

export const WORKS = ['push', 'bulk', 'drain', 'one'] as const
export type Work = (typeof WORKS)[number]

/** Loops that each await their push, and slots of the worker. */
const IN_FLIGHT = 50
const BULK = 500

export const ABOUT: Record<Work, string> = {
  push: `push, ${IN_FLIGHT} in flight`,
  bulk: `push, bulk of ${BULK}`,
  drain: `drain, ${IN_FLIGHT} slots`,
  one: 'push and its end, one job in flight',
}

/** Each ends when the store has all of it. A drain works off what `fill` has pushed. */
export const PERFORM: Record<Work, (queue: Queue<number>, count: number) => Promise<void>> = {
  push: (queue, count) => loops(IN_FLIGHT, count, (n) => queue.push(n)),
  bulk: (queue, count) => fill(queue, count),
  async drain(queue, count) {
    let done = 0
    await worked(queue, () => ++done === count)
  },
  async one(queue, count) {
    let awaited = 0
    let handled = () => {}
    const worker = queue.work(async ({ data }) => {
      if (data === awaited) handled()
    })
    for (awaited = 0; awaited < count; awaited++) {
      const { promise, resolve } = Promise.withResolvers<void>()
      handled = resolve
      await Promise.all([queue.push(awaited), promise])
    }
    await settled(queue, worker)
  },
}

export async function fill(queue: Queue<number>, count: number): Promise<void> {
  for (let from = 0; from < count; from += BULK) {
    await queue.pushMany(Array.from({ length: Math.min(BULK, count - from) }, (_, n) => from + n))
  }
}

async function worked(queue: Queue<number>, isLast: () => boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const worker = queue.work(
    async () => {
      if (isLast()) resolve()
    },
    { concurrency: IN_FLIGHT },
  )
  await promise
  await settled(queue, worker)
}

/** Handled is not yet acknowledged: closing the worker sends every completion. */
async function settled(queue: Queue<number>, worker: Worker): Promise<void> {
  await worker.close()
  const { counts } = await queue.stats({ minutes: 1 })
  if (counts.waiting + counts.running > 0) throw new Error(`jobs are left: ${JSON.stringify(counts)}`)
}

async function loops(parallel: number, count: number, send: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const loop = async () => {
    while (next < count) await send(next++)
  }
  await Promise.all(Array.from({ length: parallel }, loop))
}
