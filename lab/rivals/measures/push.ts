/** How fast a queue without a worker takes jobs. */
import { WAYS } from '../../bench/measures/push.ts'
import { rate, rounds } from '../../bench/measures/rounds.ts'
import { openContender } from '../contender.ts'
import type { Measure, PushTask } from '../task.ts'

const ROUNDS = 3

export const push: Measure<PushTask> = async ({ contender: name, url, way, count }) => {
  const contender = await openContender(name, { url, concurrency: 1, forget: false })
  const outcome = await rounds(ROUNDS, async (round) => {
    const line = contender.line(`push${round}`, async () => {})
    // The queue itself is made by its first push.
    await line.push({ n: -1 })
    return rate(count, () => WAYS[way](line, count))
  })
  await contender.close()
  return outcome
}
