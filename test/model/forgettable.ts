/** Which groups a store may forget, as `contract/operations.md` has it under "Limits and turns". When it does so is its own matter. */

import type { Model } from './model.ts'

/** Ms for which a group is kept after its last start. */
const KEEP = 10_000

/** Groups that a store may forget now, and whose jobs would come sooner if it did. */
export function forgettable(model: Model): { queue: string; group: string }[] {
  return [...model.queues.values()].flatMap((queue) => {
    const inUse = model.groups(queue.queue).map(({ group }) => group)
    return queue.groups
      .filter(
        ({ group, virtual }) => !inUse.includes(group) && virtual.some((own, at) => own > Number(queue.virtual[at])),
      )
      .filter(({ full, pausedUntil, startedAt }) => Math.max(full / 1000, pausedUntil, startedAt + KEEP) <= model.now)
      .map(({ group }) => ({ queue: queue.queue, group }))
  })
}
