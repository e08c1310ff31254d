/** The events of a worker's attempts. */

import type { FailOutcome, HoldOutcome } from '../store.ts'
import type { AttemptEvent, PondEmitter } from '../values/events.ts'
import type { Attempt } from './attempt.ts'
import type { Ending } from './ending.ts'

export class AttemptEvents {
  readonly #queue: string
  readonly #emitter: PondEmitter

  constructor(queue: string, emitter: PondEmitter) {
    this.#queue = queue
    this.#emitter = emitter
  }

  started(attempt: Attempt): void {
    if (this.#emitter.has('started')) {
      this.#emitter.emit('started', { ...this.#eventOf(attempt), wait: attempt.wait })
    }
  }

  stale(attempt: Attempt): void {
    this.#emitter.emit('stale', this.#eventOf(attempt))
  }

  /** @param outcome the store's, of the ending */
  ended(ending: Ending, outcome: HoldOutcome | FailOutcome): void {
    const { attempt } = ending
    const emitter = this.#emitter
    if (outcome === 'stale') {
      if (ending.kind !== 'release') this.stale(attempt)
    } else if (ending.kind === 'release') {
      if (ending.pause) emitter.emit('rateLimited', { ...this.#eventOf(attempt), pause: ending.pause })
    } else if (ending.kind !== 'fail') {
      if (emitter.has('completed')) emitter.emit('completed', { ...this.#timingsOf(attempt), result: ending.value })
    } else if (outcome === 'dead') emitter.emit('dead', { ...this.#eventOf(attempt), error: ending.error })
    else emitter.emit('failed', { ...this.#timingsOf(attempt), error: ending.error })
  }

  #eventOf({ claimed }: Attempt): AttemptEvent {
    const { id, attempt, priority } = claimed
    return { queue: this.#queue, id, attempt, priority }
  }

  #timingsOf(attempt: Attempt) {
    return { ...this.#eventOf(attempt), wait: attempt.wait, run: attempt.run }
  }
}
