import type { MillpondError } from '../values/errors/errors.ts'
import type { Attempt, AttemptBatch } from './attempt.ts'

/** The attempts of one call of a batch handler, in one slot. The batch is stopped if its last attempt to leave was stopped. */
export class Batch implements AttemptBatch {
  readonly attempts: readonly Attempt[]
  readonly #free: () => void
  readonly #stopListeners: ((reason: MillpondError) => void)[] = []
  #running: number
  #reason: MillpondError | undefined

  /** @param free called once none of the attempts runs any more */
  constructor(attempts: readonly Attempt[], free: () => void) {
    this.attempts = attempts
    this.#running = attempts.length
    this.#free = free
  }

  get stopped(): MillpondError | undefined {
    return this.#reason
  }

  left(last: Attempt): void {
    this.#running--
    if (this.#running > 0) return
    this.#free()
    this.#reason = last.stopped
    if (this.#reason !== undefined) for (const listener of this.#stopListeners) listener(this.#reason)
  }

  /** Called at once if it is stopped. */
  whenStopped(listener: (reason: MillpondError) => void): void {
    if (this.#reason === undefined) this.#stopListeners.push(listener)
    else listener(this.#reason)
  }
}
