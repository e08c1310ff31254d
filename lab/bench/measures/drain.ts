/** How fast one worker gets through a queue, until the store knows that every item is done. */
import { setImmediate as turn } from 'node:timers/promises'
import { type Contender, type Handler, openContender } from '../contender.ts'
import type { DrainTask, Measure, Work } from '../task.ts'
import { fill } from './push.ts'
import { type Rate, rate, rounds } from './rounds.ts'

export const SLOTS = 50

const HANDLERS: Record<Work, Handler> = {
  nothing: async () => {},
  'a turn': async () => {
    await new Promise(setImmediate)
  },
}

export const drain: Measure<'drain'> = async (task) => {
  const { url, forget } = task
  const contender = await openContender(task.contender, { url, concurrency: SLOTS, forget })
  const outcome = await rounds(task.rounds, (round) => once(contender, `drain${round}`, task))
  await contender.close()
  return outcome
}

async function once(contender: Contender, name: string, { from, work, count }: DrainTask): Promise<Rate> {
  const line = contender.line(name, HANDLERS[work])
  if (from === 'backlog') await fill(line, count)
  else {
    line.work()
    // Enough for a store to hear of the queue, which others would have been pushed to before.
    await turn()
  }
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
