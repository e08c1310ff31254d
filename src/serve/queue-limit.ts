/**
 * How many queues clients may make. What a client names is kept in the store until nobody has used it for an hour, so names without end would fill
 * it, and each costs every sweep.
 *
 * How many there are is what the last sweep counted and the new ones since; a name that is known here costs nothing. So the limit is held about:
 * several services on one store may each let a few in beyond it between two sweeps.
 */

import type { Store } from '../store.ts'
import { MillpondError } from '../values/errors.ts'

/** Names that are remembered beyond the limit: of queues that others made. */
const MAX_KNOWN_BEYOND_LIMIT = 10_000

export class QueueLimit {
  readonly #store: Pick<Store, 'stats'>
  readonly #most: number
  readonly #known = new Set<string>()
  #count = 0

  /** @param most queues that there may be; those that are there already can always be used */
  constructor(store: Pick<Store, 'stats'>, most: number) {
    this.#store = store
    this.#most = most
  }

  /** A sweep has counted them. */
  swept(queues: number): void {
    // Some were removed, or were never made because their push failed.
    if (queues < this.#count) this.#known.clear()
    this.#count = queues
  }

  /** To be called before anything that may make the queue. @throws TooManyQueues, `Store…` */
  async admit(queue: string): Promise<void> {
    if (this.#known.has(queue)) return
    const [there] = await this.#store.stats({ queue, minutes: 0 })
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
