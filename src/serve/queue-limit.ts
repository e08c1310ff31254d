/**
 * Bounds the queues that clients may make. A queue stays in the store until somebody removes it, so names without end would fill
 * the store.
 *
 * The number of queues is that of the last sweep and the new ones since. Known names cost nothing. The bound is approximate: between two
 * sweeps, several services on one store may each admit a few too many.
 */

import type { Store } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'

/** Names remembered beyond the limit: of queues that other programs made. */
const MAX_KNOWN_BEYOND_LIMIT = 10_000

export class QueueLimit {
  readonly #store: Store
  readonly #most: number
  readonly #known = new Set<string>()
  #count = 0

  /** @param most queues; existing ones can always be used */
  constructor(store: Store, most: number) {
    this.#store = store
    this.#most = most
  }

  /** To be called after a sweep, which counts the queues. */
  swept(queues: number): void {
    // Some were removed, or not made because their push failed.
    if (queues < this.#count) this.#known.clear()
    this.#count = queues
  }

  /** To be called before anything that may make the queue. @throws TooManyQueues, `Store…` */
  async admit(queue: string): Promise<void> {
    if (this.#known.has(queue)) return
    const [there] = await this.#store.operations.stats({ queue, minutes: 0 })
    if (there === undefined) {
      if (this.#count >= this.#most) {
        const message = `there are ${this.#count} queues, and no more than ${this.#most} may be made here`
        throw new MillpondError('TooManyQueues', message, { queue })
      }
      this.#count++
    }
    if (this.#known.size >= this.#most + MAX_KNOWN_BEYOND_LIMIT) this.#known.clear()
    this.#known.add(queue)
  }
}
