/**
 * When a pusher has to let the event loop turn. Nothing in this store waits for anything outside the process, so whoever awaits
 * push after push in a loop would keep sockets and timers from their turn until the last job is in, and with `pushMany` workers, too. It also costs
 * more: jobs that pile up meanwhile are copied from one generation of the heap to the next, jobs that are worked off at once are not.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'

/** Pushes may go on for this long without a turn of the event loop, in milliseconds. */
const LONGEST = 3

export class Breath {
  /** `performance.now()` of the first call since the event loop last turned. */
  #since = Number.NaN
  #sameTurn = false

  /** Resolves in the next turn; undefined where this one has not taken long. */
  taken(): Promise<void> | undefined {
    const now = performance.now()
    if (this.#sameTurn) return now - this.#since > LONGEST ? nextTurn() : undefined
    this.#sameTurn = true
    this.#since = now
    setImmediate(() => {
      this.#sameTurn = false
    })
    return undefined
  }
}
