/**
 * What a queue, or a group, keeps of its rate and of its last pause. Both count within bounds that move with the time;
 * a claim stores them (`bound`), everyone else counts with them. `contract/operations.md`, "Limits and turns", says
 * why. Times are in milliseconds unless named otherwise.
 */
import type { Rate } from '../../values/settings/limits.ts'
import { boundedFull, fullAfter, fullWithout, startableAt } from '../../values/settings/rate.ts'

export class Throttle {
  /** Of the rate, in microseconds. */
  #full = Number.NEGATIVE_INFINITY
  /** The cost of the last start. */
  #fullCost = 1
  #pausedUntil = Number.NEGATIVE_INFINITY
  #pauseLength = 0

  /** Nothing holds a job from then on. */
  get endsAt(): number {
    return Math.max(this.#full / 1000, this.#pausedUntil)
  }

  /** Milliseconds until a start of this cost is allowed. */
  wait(rate: Rate | null, now: number, cost: number): number {
    const rated = rate === null ? now : Math.ceil(startableAt(rate, this.#fullAt(rate, now), cost) / 1000)
    return Math.max(0, this.#pauseEnd(now) - now, rated - now)
  }

  /** A claim stores the bound where the time lies beyond it. The bound moves with now, so the start would otherwise stay as far ahead. */
  bound(rate: Rate | null, now: number): void {
    this.#full = this.#fullAt(rate, now)
    this.#pausedUntil = this.#pauseEnd(now)
  }

  start(rate: Rate | null, now: number, cost: number): void {
    if (rate === null) return
    this.#full = fullAfter(rate, this.#fullAt(rate, now), now * 1000, cost)
    this.#fullCost = cost
  }

  /** A start did not come about. */
  giveBack(rate: Rate | null, now: number, startedAt: number, cost: number): void {
    if (rate !== null) this.#full = fullWithout(rate, this.#fullAt(rate, now), now * 1000, startedAt * 1000, cost)
  }

  /** A longer pause stays. */
  pause(now: number, length: number): void {
    this.#pausedUntil = this.#pauseEnd(now)
    if (now + length <= this.#pausedUntil) return
    this.#pausedUntil = now + length
    this.#pauseLength = length
  }

  #fullAt(rate: Rate | null, now: number): number {
    return rate === null ? this.#full : boundedFull(rate, this.#full, this.#fullCost, now * 1000)
  }

  #pauseEnd(now: number): number {
    return Math.min(this.#pausedUntil, now + this.#pauseLength)
  }
}
