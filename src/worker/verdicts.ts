/** Which ending an answer, an error or a timeout means for an attempt. */

import type { PondEmitter } from '../pond/events.ts'
import type { Encoded } from '../store.ts'
import { encode } from '../values/encoding.ts'
import { MillpondError } from '../values/errors.ts'
import { jobError } from '../values/job.ts'
import { errorSummary } from '../values/safe-error.ts'
import type { Attempt } from './attempt.ts'
import { type Ending, failed, released } from './ending-batches.ts'
import { isOutcome, Outcome } from './outcome.ts'

export interface VerdictSettings {
  queue: string
  /** Bytes of an encoded result or progress report. */
  maxPayload: number
  /** Milliseconds before the next attempt, where this process computes them; undefined: the queue's policy in the store does. */
  backoff: ((attempt: number, error: unknown) => number) | undefined
}

export class Verdicts {
  readonly #settings: VerdictSettings
  readonly #told: Pick<PondEmitter, 'trouble' | 'failure'>

  constructor(settings: VerdictSettings, told: Pick<PondEmitter, 'trouble' | 'failure'>) {
    this.#settings = settings
    this.#told = told
  }

  /** The job's timeout begins. @param timedOut called at its end, unless the attempt is ending or over by then */
  watchTimeout(attempt: Attempt, timedOut: (attempt: Attempt, ending: Ending) => void): void {
    const { id, timeout } = attempt.claimed
    if (timeout === null) return
    // An open worker keeps the process alive; a closed one must not, whatever its handler still does.
    attempt.timeout = setTimeout(() => {
      // A commit under way decides by itself.
      if (attempt.ending || attempt.over !== undefined) return
      const error = new MillpondError('TimedOut', `job ${id} ran longer than its timeout of ${timeout} ms`, { id })
      const ending = this.failed(attempt, error)
      attempt.end(error)
      timedOut(attempt, ending)
    }, timeout).unref()
  }

  /** @throws Outcome: the work is done, and doing it again would only end here again */
  result(value: unknown): Encoded | null {
    if (value === undefined) return null
    try {
      return encode(value, 'result', this.#settings.maxPayload)
    } catch (error) {
      throw Outcome.giveUp(error)
    }
  }

  /** @param error whatever was thrown, or an Outcome */
  failed(attempt: Attempt, error: unknown): Ending {
    if (!isOutcome(error)) {
      const { claimed } = attempt
      this.#told.failure(this.#settings.queue, error, claimed.attempt >= claimed.attempts)
      return failed(attempt, jobError(error), this.#delay(attempt, error))
    }
    const { kind, delay, cause } = error
    if (kind === 'rateLimited') return released(attempt, delay ?? 0)
    const stored = jobError(cause instanceof Error ? cause : error)
    if (!(cause instanceof MillpondError)) stored.code = delay === null ? 'GaveUp' : 'HandlerFailed'
    return failed(attempt, stored, delay)
  }

  #delay(attempt: Attempt, error: unknown): number | 'backoff' {
    const { backoff } = this.#settings
    if (backoff === undefined) return 'backoff'
    try {
      return backoff(attempt.claimed.attempt, error)
    } catch (thrown) {
      // The caller's backoff function is at fault; the job must not suffer for it.
      const message = `the backoff function of queue ${this.#settings.queue} failed: ${errorSummary(thrown)}`
      this.#told.trouble(new MillpondError('InvalidOption', message, { thrown }))
      return 'backoff'
    }
  }
}
