/**
 * Jobs on their way back to the store, since they did not start in time. Until the store has them, the worker claims none, and what a claim
 * brings that was sent before goes back, too: those jobs would start before these otherwise.
 */

import type { Attempt } from './attempt.ts'

export class LateJobs {
  readonly #returning = new Set<Attempt>()
  /** Of `performance.now()`. */
  #lastLeft = Number.NEGATIVE_INFINITY

  /** The store has all of them. */
  get areBack(): boolean {
    return this.#returning.size === 0
  }

  /** They go back now. */
  leave(attempts: readonly Attempt[]): void {
    for (const attempt of attempts) this.#returning.add(attempt)
    this.#lastLeft = performance.now()
  }

  /** The store has answered. @returns whether it was the last one that the worker waited for */
  back(attempt: Attempt): boolean {
    return this.#returning.delete(attempt) && this.areBack
  }

  /** Whether what a claim brings would start before jobs that go back. @param sentAt of `performance.now()` */
  areBehind(sentAt: number): boolean {
    return sentAt < this.#lastLeft
  }
}
