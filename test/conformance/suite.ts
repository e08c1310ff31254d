/** What the conformance tests share: a test on every store, and short ways to make jobs. */

import { describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { isMillpondError, MillpondError } from '../../src/values/errors/errors.ts'
import type { Claimed, ClaimRequest, Hold, NewJob } from '../../src/values/jobs/records.ts'
import { newJob } from '../support/jobs.ts'
import { runsOnVariants } from '../support/variants.ts'
import { everyStore, stores } from './stores.ts'

type Check = (store: Store, clock: { now: number }) => Promise<void>

/** Runs each check on a fresh instance of every store of this run. The clock stands still unless the check moves it. */
export function conformance(topic: string, checks: Record<string, Check>, on: typeof stores = stores): void {
  for (const { name, skip, open } of on) {
    describe(`${topic}: ${name}`, { skip }, () => {
      for (const [title, check] of Object.entries(checks)) {
        test(title, async (t) => {
          const clock = { now: Date.now() }
          const { store, dispose } = await open({ clock: () => clock.now })
          try {
            await check(store, clock)
          } catch (error) {
            // What the check needs is a capability that the store lacks, as the store itself says.
            if (!isMillpondError(error, 'NotSupported') && !isMillpondError(error, 'AcrossShards')) throw error
            t.skip(error.message)
          } finally {
            await dispose()
          }
        })
      }
    })
  }
}

/** The same, on the variants as well: what the way to a store has a part in. */
export const everyWay = (topic: string, checks: Record<string, Check>): void =>
  conformance(topic, checks, runsOnVariants ? stores : everyStore)

/** Skips the check on a store whose delayed jobs become due by another clock than the check's. */
export function setsClockForDelays({ name }: Store): void {
  const reason = everyStore.find((each) => each.name === name)?.ownClock
  if (reason !== undefined) throw new MillpondError('NotSupported', reason)
}

export const claim = (store: Store, given: Partial<ClaimRequest> = {}): Promise<Claimed> =>
  store.operations.claim({ queue: 'q', worker: 'w', limit: 1_000, lease: 60_000, ...given })

/** Pushes one job, claims it, and gives its hold. */
export async function running(store: Store, given: Partial<NewJob> = {}): Promise<Hold> {
  await store.operations.push({ jobs: [newJob(given)] })
  return first((await claim(store)).jobs)
}

export function first<T>(list: readonly T[]): T {
  const [item] = list
  if (item === undefined) throw new Error('an empty list where one item at least was due')
  return item
}
