/** How fast a queue without a worker takes items. */
import { type Item, type Line, openContender } from '../contender.ts'
import type { Measure, PushTask } from '../task.ts'
import { rate, rounds } from './rounds.ts'

const IN_FLIGHT = 50
export const BULK = 500

export const push: Measure<'push'> = async (task) => {
  const { url, count } = task
  const contender = await openContender(task.contender, { url, concurrency: 1, forget: false })
  const outcome = await rounds(task.rounds, async (round) => {
    const line = contender.line(`push${round}`, async () => {})
    // The queue itself is made by its first push.
    await line.push({ n: -1 })
    return rate(count, () => WAYS[task.way](line, count))
  })
  await contender.close()
  return outcome
}

export const WAYS: Record<PushTask['way'], (line: Line, count: number) => Promise<void>> = {
  one: async (line, count) => {
    for (let n = 0; n < count; n++) await line.push({ n })
  },
  flight: (line, count) => loops(IN_FLIGHT, count, 1, ([item]) => item && line.push(item)),
  bulk: (line, count) => fill(line, count),
  bulk2: (line, count) => loops(2, count, BULK, (items) => line.pushMany?.(items)),
}

/** Puts `count` items into a queue: 500 a call, or one by one where there is no such call. */
export async function fill(line: Line, count: number): Promise<void> {
  if (line.pushMany === undefined) for (let n = 0; n < count; n++) await line.push({ n })
  else await loops(1, count, BULK, line.pushMany)
}

export async function loops(
  parallel: number,
  count: number,
  size: number,
  send: (items: Item[]) => Promise<unknown> | undefined,
): Promise<void> {
  let next = 0
  const loop = async () => {
    while (next < count) {
      const from = next
      next = Math.min(count, next + size)
      const items: Item[] = []
      for (let n = from; n < next; n++) items.push({ n })
      await send(items)
    }
  }
  await Promise.all(Array.from({ length: parallel }, loop))
}
