/** What the conformance tests share: a test on every store, and short ways to make jobs. */

import { describe, test } from 'node:test'
import type { Claimed, ClaimRequest, Encoded, Hold, JobError, NewJob, Store } from '../../src/store.ts'
import { stores } from './stores.ts'

export const NULL: Encoded = { encoding: 'json', body: 'null' }
export const ERROR: JobError = { code: 'HandlerFailed', name: 'Error', message: 'it failed' }

let ids = 0
/** A UUIDv7 in form, never the same twice. */
export const newId = (): string => `019b76da-a800-7000-8000-${(++ids).toString(16).padStart(12, '0')}`

type Check = (store: Store, clock: { now: number }) => Promise<void>

/** Runs each check on a fresh instance of every store. The clock stands still unless the check moves it. */
export function conformance(topic: string, checks: Record<string, Check>): void {
  for (const { name, skip, open } of stores) {
    describe(`${topic}: ${name}`, { skip }, () => {
      for (const [title, check] of Object.entries(checks)) {
        test(title, async () => {
          const clock = { now: Date.now() }
          const { store, dispose } = await open({ clock: () => clock.now })
          try {
            await check(store, clock)
          } finally {
            await dispose()
          }
        })
      }
    })
  }
}

export function newJob(given: Partial<NewJob> = {}): NewJob {
  return {
    id: newId(),
    queue: 'q',
    priority: 4,
    delay: 0,
    runAt: null,
    key: null,
    group: null,
    attempts: 3,
    timeout: null,
    trace: null,
    data: NULL,
    ...given,
  }
}

export const newJobs = (count: number, given: Partial<NewJob> = {}): NewJob[] =>
  Array.from({ length: count }, () => newJob(given))

export const claim = (store: Store, given: Partial<ClaimRequest> = {}): Promise<Claimed> =>
  store.claim({ queue: 'q', worker: 'w', limit: 1_000, lease: 60_000, ...given })

/** Pushes one job, claims it, and gives its hold. */
export async function running(store: Store, given: Partial<NewJob> = {}): Promise<Hold> {
  await store.push([newJob(given)])
  return first((await claim(store)).jobs)
}

export function first<T>(list: readonly T[]): T {
  const [item] = list
  if (item === undefined) throw new Error('an empty list where one item at least was due')
  return item
}
