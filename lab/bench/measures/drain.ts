/** How fast one worker gets through a queue, until the store knows that every item is done. */
import { type Handler, type Line, openContender } from '../contender.ts'
import type { DrainTask, Measure, Work } from '../measure.ts'
import { fill } from './push.ts'
import { type Rate, rate, rounds } from './rounds.ts'

const CONCURRENCY = 50

const HANDLERS: Record<Work, Handler> = {
  nothing: async () => {},
  'a turn': async () => {
    await new Promise(setImmediate)
  },
}

export const drain: Measure<DrainTask> = async (task, dir) => {
  const { durability, forget = false } = task
  const contender = await openContender(task.contender, { durability, dir, concurrency: CONCURRENCY, forget })
  const lines: Line[] = []
  const outcome = await rounds(task.rounds, (round) => {
    const line = contender.line(`drain${round}`, HANDLERS[task.work])
    // Kept to the end, as a service keeps its queues: where none of a class is left, V8 throws away the code that it has compiled for it.
    lines.push(line)
    return once(line, task)
  })
  await contender.close()
  return outcome
}

async function once(line: Line, { from, count }: DrainTask): Promise<Rate> {
  if (from === 'backlog') await fill(line, count)
  else line.work()
  globalThis.gc?.()
  const speed = await rate(count, async () => {
    if (from === 'backlog') line.work()
    else if (from === 'many') await fill(line, count)
    else {
      const pushes: unknown[] = []
      for (let n = 0; n < count; n++) pushes.push(line.push({ n }))
      await Promise.all(pushes)
    }
    await line.settled(count)
  })
  await line.stop()
  return speed
}
