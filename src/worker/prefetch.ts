/**
 * How many jobs a worker may hold beyond those it runs: no more than it expects to start within the window.
 *
 *   buffer = ⌊ productive slots × window ÷ mean run time ⌋, at most MAX_BUFFERED
 *
 * A slot is productive unless its job has already run for longer than the window: such a slot will likely be held on, and
 * what is buffered behind it would wait. Long jobs thus give 0, which is pure pull; millisecond jobs give hundreds.
 */

import type { LinkedList } from '../values/collections/linked-list.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import type { Attempt } from './attempt.ts'

/** Past this, a larger buffer saves no more round trips, and a crash would put more jobs back by a lost lease. */
const { maxBuffered: MAX_BUFFERED, riseWeight: RISE, fallWeight: FALL } = DEFAULTS.worker

export class Prefetch {
  readonly window: number
  /** The queue has a limit or a rate: a job that is claimed ahead would take a slot or a start from others. */
  limited = false
  #mean: number | undefined

  /** @param window in milliseconds */
  constructor(window: number) {
    this.window = window
  }

  /** Learns from a finished attempt that ran this long. A rise weighs more than a fall. */
  ran(ms: number): void {
    const mean = this.#mean
    if (mean === undefined) this.#mean = ms
    else this.#mean = mean + (ms - mean) * (ms > mean ? RISE : FALL)
  }

  /** @param productive slots that are free, or whose job has run for less than the window */
  buffer(productive: number): number {
    // Before the first job has finished nothing is known, and holding nothing back can hold nothing up.
    if (this.#mean === undefined) return 0
    return Math.min(MAX_BUFFERED, Math.floor((productive * this.window) / Math.max(this.#mean, 0.001)))
  }

  /** How many jobs to claim. @param running in the order of their start */
  wanted(slots: number, running: LinkedList<Attempt>, buffered: number): number {
    const free = slots - running.size
    const ahead = this.limited ? 0 : this.buffer(slots - this.#stuck(running))
    const wanted = free + ahead - buffered
    // With every slot taken, topping up by dribs would cost a round trip each.
    return free <= buffered && wanted < ahead / 2 ? 0 : wanted
  }

  /** Slots whose job has run past the window already. */
  #stuck(running: LinkedList<Attempt>): number {
    const before = performance.now() - this.window
    let stuck = 0
    for (let attempt = running.first; attempt !== null && attempt.startedAt <= before; attempt = attempt.next) stuck++
    return stuck
  }
}
