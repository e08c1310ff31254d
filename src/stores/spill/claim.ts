/** All claims are of jobs in memory, so limits and rates are exact. A claim first brings there what comes before them. */

import type { Input, Output } from '../../store.ts'
import type { Claimed } from '../../values/jobs/records.ts'
import { within } from '../../values/time/within.ts'
import type { Spill } from './spill.ts'

type Next = (input: Input<'claim'>) => Promise<Output<'claim'>>

/**
 * Milliseconds that a claim waits for the durable store. Then it gives what is in memory, and the worker claims again.
 */
const PATIENCE = 1_000
/** Milliseconds for which no claim waits after a take that failed or took too long, while memory has jobs. */
const PAUSE = 1_000

export async function claim(spill: Spill, request: Input<'claim'>, next: Next): Promise<Claimed> {
  const queue = spill.queues.get(request.queue)
  if (queue === undefined || !queue.mayWait) return next(request)
  const { limit, minPriority = 0 } = request
  const until = performance.now() + PATIENCE
  const hasFailed = () => performance.now() - spill.failedAt < PAUSE
  let failure: { error: unknown } | undefined
  const failed = (error: unknown) => {
    failure = { error }
    spill.failedAt = performance.now()
  }
  let claimed: Claimed | undefined
  for (let left = limit; left > 0; ) {
    const patience = until - performance.now()
    const waits = patience > 0 && failure === undefined && !(hasFailed() && queue.hasInMemory)
    if (waits && queue.isAhead(minPriority)) {
      await within(patience, queue.takeFirst(left, minPriority).catch(failed))
      if (performance.now() >= until) spill.failedAt = performance.now()
    }
    const from = waits && failure === undefined ? queue.startsFrom(minPriority) : minPriority
    const more: Claimed = await next({ ...request, limit: left, minPriority: from })
    claimed = claimed === undefined ? more : { ...more, jobs: [...claimed.jobs, ...more.jobs] }
    left -= more.jobs.length
    if (more.jobs.length === 0 && (from === minPriority || !queue.isAhead(minPriority))) break
  }
  if (claimed === undefined || (claimed.jobs.length === 0 && failure !== undefined)) throw failure?.error
  const isShort = claimed.jobs.length < limit && queue.isAhead(minPriority)
  if (isShort && failure === undefined) claimed.retryAfter = queue.taking === undefined ? 0 : PATIENCE
  if (queue.mayWait && queue.isLow && queue.taking === undefined && !hasFailed()) {
    queue.take(queue.room, 0).catch(failed)
  }
  return claimed
}
