/** All claims are of jobs in memory, so limits and rates are exact. A claim first brings there what comes before them. */
import type { Claimed, Input, Output } from '../../store.ts'
import { within } from '../../values/within.ts'
import type { Spill } from './spill.ts'

type Next = (input: Input<'claim'>) => Promise<Output<'claim'>>

/**
 * Milliseconds that a claim waits for the durable store. Then it gives what is in memory. A bell rings when jobs come later.
 */
const PATIENCE = 100
/** Milliseconds for which a take that failed is not repeated while memory has jobs. */
const PAUSE = 1_000

export async function claim(spill: Spill, request: Input<'claim'>, next: Next): Promise<Claimed> {
  const queue = spill.queues.get(request.queue)
  if (queue === undefined || !queue.mayWait) return next(request)
  const { limit, minPriority = 0 } = request
  const until = performance.now() + PATIENCE
  const failed = (error: unknown) => {
    failure = { error }
    spill.failedAt = performance.now()
  }
  let failure: { error: unknown } | undefined
  let claimed: Claimed | undefined
  for (let left = limit; left > 0; ) {
    const patience = until - performance.now()
    if (queue.isAhead(minPriority) && patience > 0) {
      await within(patience, queue.takeFirst(left, minPriority).catch(failed))
    }
    const more: Claimed = await next({ ...request, limit: left })
    claimed = claimed === undefined ? more : { ...more, jobs: [...claimed.jobs, ...more.jobs] }
    left -= more.jobs.length
    if (more.jobs.length === 0 || !queue.isAhead(minPriority)) break
  }
  if (claimed === undefined || (claimed.jobs.length === 0 && failure !== undefined)) throw failure?.error
  if (queue.mayWait && queue.isLow && queue.taking === undefined && performance.now() - spill.failedAt > PAUSE) {
    queue.take(queue.room, 0).catch(failed)
  }
  return claimed
}
