/** Which ending a handler's answer or error means. */

import { inThisContext } from '../values/async-context.ts'
import { encode } from '../values/encoding.ts'
import { MillpondError } from '../values/errors.ts'
import type { PondEmitter } from '../values/events.ts'
import { jobError } from '../values/job.ts'
import { isError } from '../values/realms.ts'
import { errorSummary } from '../values/safe-error.ts'
import type { Attempt } from './attempt.ts'
import { completed, failed, released, type Untold } from './ending.ts'
import { isOutcome, Outcome } from './outcome.ts'

export interface EndingSettings {
  queue: string
  /** Bytes of an encoded result or progress report. */
  maxPayload: number
  /** Milliseconds before the next attempt, where this process computes them; undefined: the queue's policy in the store does. */
  backoff: ((attempt: number, error: unknown) => number) | undefined
}

export class EndingRules {
  readonly #queue: string
  readonly #maxPayload: number
  readonly #backoff: EndingSettings['backoff']
  readonly #events: Pick<PondEmitter, 'trouble' | 'failure'>

  constructor({ queue, maxPayload, backoff }: EndingSettings, events: Pick<PondEmitter, 'trouble' | 'failure'>) {
    this.#queue = queue
    this.#maxPayload = maxPayload
    this.#backoff = backoff && inThisContext(backoff)
    this.#events = events
  }

  /** @param value the result, or an Outcome */
  answered(attempt: Attempt, value: unknown): Untold {
    if (isOutcome(value)) return this.failed(attempt, value)
    if (value === undefined) return completed(attempt, null, value)
    try {
      return completed(attempt, encode(value, 'result', this.#maxPayload), value)
    } catch (error) {
      // The work is done, and doing it again would only end here again.
      return this.failed(attempt, Outcome.giveUp(error))
    }
  }

  /** @param error anything that can be thrown, or an Outcome */
  failed(attempt: Attempt, error: unknown): Untold {
    if (!isOutcome(error)) {
      const { claimed } = attempt
      this.#events.failure(this.#queue, error, claimed.attempt >= claimed.attempts)
      return failed(attempt, jobError(error), this.#delay(attempt, error))
    }
    const { kind, delay, cause } = error
    if (kind === 'rateLimited') return released(attempt, delay ?? 0)
    const stored = jobError(isError(cause) ? cause : error)
    if (!(cause instanceof MillpondError)) stored.code = delay === null ? 'GaveUp' : 'HandlerFailed'
    return failed(attempt, stored, delay)
  }

  #delay(attempt: Attempt, error: unknown): number | 'backoff' {
    if (this.#backoff === undefined) return 'backoff'
    try {
      return this.#backoff(attempt.claimed.attempt, error)
    } catch (thrown) {
      // The caller's backoff function is at fault; the job must not suffer for it.
      const message = `the backoff function of queue ${this.#queue} failed: ${errorSummary(thrown)}`
      this.#events.trouble(new MillpondError('InvalidOption', message, { thrown }))
      return 'backoff'
    }
  }
}
