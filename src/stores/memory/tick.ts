/**
 * When a pusher has to let the event loop go on. Nothing in this store waits for anything outside the process, so a loop that
 * awaits push after push would keep sockets, timers and workers from running until its last job is in. It also costs more: jobs
 * that pile up meanwhile are copied from one generation of the heap to the next, jobs that are worked off at once are not.
 */
import { setImmediate as afterThisTick } from 'node:timers/promises'

/** Milliseconds. */
const MAX_TICK = 3

export class Tick {
  /** `performance.now()` of the first call since the event loop last went on; null: there was none. */
  #since: number | null = null

  /** Resolves in the next tick; undefined where this one has not taken long. */
  mayEnd(): Promise<void> | undefined {
    const now = performance.now()
    if (this.#since !== null) return now - this.#since > MAX_TICK ? afterThisTick() : undefined
    this.#since = now
    setImmediate(() => {
      this.#since = null
    })
    return undefined
  }
}
