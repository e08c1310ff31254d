/** Tells the store from which queues this process claims, so that `explain` knows whether anybody does: per queue once in a while, not per claim. */
import type { Store } from '../store.ts'

/** Milliseconds between two notes of a queue. */
const EVERY = 30_000
/** As long as the store does not know the queue: its first push may come at any time. */
const EVERY_UNKNOWN = 1000
/** Queues that are remembered; then all are forgotten, and noted once more. */
const MAX_QUEUES = 10_000

export function notingClaims(store: Store): Store {
  /** By queue, the `performance.now()` from which it is noted again. */
  const next = new Map<string, number>()

  async function note(queue: string): Promise<void> {
    const [isKnown] = await store.noteClaims([queue])
    if (!isKnown) next.set(queue, performance.now() + EVERY_UNKNOWN)
  }

  return {
    ...store,
    claim(request) {
      const now = performance.now()
      if (now >= (next.get(request.queue) ?? 0)) {
        if (next.size >= MAX_QUEUES) next.clear()
        next.set(request.queue, now + EVERY)
        // It is for people only. A store that fails now fails the claim, too.
        note(request.queue).catch(() => undefined)
      }
      return store.claim(request)
    },
  }
}
