import assert from 'node:assert/strict'
import type { Store } from '../../src/store.ts'

/**
 * Vectors and the model count a job's fences from 1. On Redis the first one is a high number, since a server that was emptied gives out no fence again.
 */
export class Fences {
  readonly store: Store
  /** By queue and id: the number before the first fence. */
  readonly #before = new Map<string, number>()

  constructor(store: Store) {
    const given = <T extends { id: string; fence: number }>(queue: string, holds: readonly T[]): T[] =>
      holds.map((hold) => ({ ...hold, fence: hold.fence + (this.#before.get(`${queue} ${hold.id}`) ?? 0) }))
    this.store = {
      ...store,
      claim: async (request) => {
        const claimed = await store.claim(request)
        const jobs = claimed.jobs.map((job) => {
          const name = `${request.queue} ${job.id}`
          const before = this.#before.get(name) ?? job.fence - 1
          assert.ok(before === 0 || store.name === 'redis', `the first fence is ${job.fence}`)
          this.#before.set(name, before)
          return { ...job, fence: job.fence - before }
        })
        return { ...claimed, jobs }
      },
      complete: (queue, items) => store.complete(queue, given(queue, items)),
      fail: (queue, items) => store.fail(queue, given(queue, items)),
      release: (queue, items) => store.release(queue, given(queue, items)),
      extend: (queue, lease, items) => store.extend(queue, lease, given(queue, items)),
    }
  }
}
