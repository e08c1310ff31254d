/** Backlogs. */
import type { Millpond, QueueOptions } from '../../src/index.ts'
import { loops } from '../bench/measures/push.ts'
import { type Data, QUEUE } from './work.ts'

/** Jobs of one call, and calls under way. */
const AT_ONCE = 5000
const CALLS = 4

/** The option of a push; empty: in no group. */
export const inGroup = (group: string): { group?: string } => (group === '' ? {} : { group })

/** @param groups in turns, one job each */
export async function pushJobs(
  pond: Millpond,
  options: QueueOptions,
  count: number,
  groups: readonly string[] | ((n: number) => string),
): Promise<void> {
  const queue = pond.queue<Data>(QUEUE, options)
  const groupOf = typeof groups === 'function' ? groups : (n: number) => groups[n % groups.length] ?? ''
  await loops(CALLS, count, AT_ONCE, (items) => {
    const each = (_: Data, at: number) => inGroup(groupOf(items[at]?.n ?? 0))
    return queue.pushMany(Array(items.length).fill(null), { each })
  })
}
