import type { Input, Output } from '../../store.ts'
import type { Swept } from '../../values/operations/swept.ts'
import { ownerOf } from './names.ts'
import type { Spill } from './spill.ts'

type Next = (input: Input<'sweep'>) => Promise<Output<'sweep'>>

/** Milliseconds between two looks at a durable store that has nothing of this process. Another one may have closed meanwhile. */
const LOOK_EVERY = 10_000

export async function sweep(spill: Spill, input: Input<'sweep'>, next: Next): Promise<Swept> {
  const swept = await next(input)
  if (spill.queues.size === 0 && performance.now() - spill.lookedAt < LOOK_EVERY) return swept
  try {
    const durable = await spill.stores.durable.operations.sweep(input)
    // Which queues have the jobs that wait now is for the look to tell.
    if (durable.promoted > 0 || durable.lost.length > 0 || performance.now() - spill.lookedAt >= LOOK_EVERY) {
      await spill.look()
    }
    return merged(swept, durable)
  } catch (error) {
    // What was lost in memory is told once, so that comes first. So does what is due there: nobody else fires it.
    if (swept.lost.length > 0 || swept.schedules !== null) return swept
    throw error
  }
}

function merged(memory: Swept, durable: Swept): Swept {
  const nexts = [memory.nextDue, durable.nextDue].filter((next) => next !== null)
  return {
    lost: [...memory.lost, ...durable.lost.map((lost) => ({ ...lost, queue: ownerOf(lost.queue) }))],
    promoted: memory.promoted + durable.promoted,
    expired: memory.expired + durable.expired,
    more: memory.more || durable.more,
    nextDue: nexts.length === 0 ? null : Math.min(...nexts),
    queues: memory.queues,
    // Those of the durable store are for the processes that opened it.
    schedules: memory.schedules,
  }
}
