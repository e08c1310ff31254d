/** Calls about any number of jobs are made in steps, since one call of the store is bounded. */

import type { Store } from '../store.ts'
import { defined } from '../values/options/options.ts'

/** Most jobs of a step. */
const MAX_JOBS_PER_STEP = 1000

/** @returns how many the store had */
export async function removeJobs(store: Store, ids: readonly string[]): Promise<number> {
  let total = 0
  for (let from = 0; from < ids.length; from += MAX_JOBS_PER_STEP) {
    total += (await store.operations.remove({ ids: ids.slice(from, from + MAX_JOBS_PER_STEP) })).removed
  }
  return total
}

/** All jobs of a queue, then the queue. @returns how many jobs */
export async function removeQueue(store: Store, queue: string): Promise<number> {
  let total = 0
  for (;;) {
    const { removed, more } = await store.operations.remove({ queue, limit: MAX_JOBS_PER_STEP })
    total += removed
    if (!more) return total
  }
}

/** All jobs of a queue that are dead by now; not those that die again meanwhile. @returns how many were requeued */
export async function requeueDead(store: Store, queue: string): Promise<number> {
  let total = 0
  let until: number | undefined
  for (;;) {
    const limit = MAX_JOBS_PER_STEP
    const { requeued, now } = await store.operations.requeue({ queue, limit, ...defined({ until }) })
    until ??= now
    total += requeued
    if (requeued < limit) return total
  }
}
