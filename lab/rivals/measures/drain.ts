/** How fast one worker gets through a backlog, from its start until the store has every completion. */
import { WAYS } from '../../bench/measures/push.ts'
import { rate, rounds } from '../../bench/measures/rounds.ts'
import { openContender } from '../contender.ts'
import type { DrainTask, Measure } from '../task.ts'

export const SLOTS = 50
const ROUNDS = 3

export const drain: Measure<DrainTask> = async ({ contender: name, url, count, forget }) => {
  const contender = await openContender(name, { url, concurrency: SLOTS, forget })
  const outcome = await rounds(ROUNDS, async (round) => {
    const line = contender.line(`drain${round}`, async () => {})
    await WAYS.bulk(line, count)
    globalThis.gc?.()
    const speed = await rate(count, async () => {
      line.work()
      await line.settled(count)
    })
    await line.stop()
    return speed
  })
  await contender.close()
  return outcome
}
