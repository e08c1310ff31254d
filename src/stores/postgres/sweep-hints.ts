/**
 * Spares sweeps what earlier ones have dealt with. While an old transaction keeps vacuum away, the index entries of all the leases
 * and due times that are over pile up before those that matter. Used only where sweeps are slow, and never for long: a
 * transaction that commits later than these allow for leaves jobs behind the hint, until the next sweep without it.
 */

/** Ms: a sweep that takes longer has much to step over, or comes to a busy server. */
const SLOW = 50
/** Ms by which a claim's commit may come after its time. It is a call of its own: at full speed a minute of dead ones were millions. */
const LATE_LEASE = 5000
/** Ms by which the commit of a push may come after the job is due: the transaction may be the caller's. */
const LATE_DUE = 60_000
/** Ms between sweeps without it. */
const WHOLE_AGAIN = 300_000

export class SweepHints {
  /** When the last sweep that dealt with all was made, by the store's clock. */
  #from: number | null = null
  #slow = false
  #whole = Number.NEGATIVE_INFINITY
  #hinted = false

  next(): { lease: number | null; due: number | null } {
    this.#hinted = this.#slow && this.#from !== null && performance.now() - this.#whole < WHOLE_AGAIN
    if (!this.#hinted || this.#from === null) return { lease: null, due: null }
    return { lease: this.#from - LATE_LEASE, due: this.#from - LATE_DUE }
  }

  swept(now: number, more: boolean, took: number): void {
    if (!this.#hinted) {
      this.#whole = performance.now()
      this.#slow = took > SLOW
    }
    if (!more) this.#from = now
  }
}
