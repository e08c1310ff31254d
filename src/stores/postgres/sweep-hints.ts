/**
 * Spares sweeps what earlier ones have dealt with. While an old transaction keeps vacuum away, the index entries of all the leases
 * and due times that are over pile up before those that matter. Used only where sweeps are slow, and never for long: a
 * transaction that commits minutes late leaves jobs behind the hint.
 */

/** Ms: a sweep that takes longer has much to step over, or comes to a busy server. */
const SLOW = 50
/** Ms by which a commit may be late and still be seen with the hint. */
const LATE = 60_000
/** Ms between sweeps without it. */
const WHOLE_AGAIN = 300_000

export class SweepHints {
  #from: number | null = null
  #slow = false
  #whole = Number.NEGATIVE_INFINITY
  #hinted = false

  next(): { lease: number | null; due: number | null } {
    this.#hinted = this.#slow && this.#from !== null && performance.now() - this.#whole < WHOLE_AGAIN
    const from = this.#hinted ? this.#from : null
    return { lease: from, due: from }
  }

  swept(now: number, more: boolean, took: number): void {
    if (!this.#hinted) {
      this.#whole = performance.now()
      this.#slow = took > SLOW
    }
    if (!more) this.#from = now - LATE
  }
}
