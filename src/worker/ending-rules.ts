/** Which ending a handler's answer or error means. */

import { encode } from '../values/encoding/encoding.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { errorSummary } from '../values/errors/safe-error.ts'
import type { PondEmitter } from '../values/jobs/events.ts'
import { jobError } from '../values/jobs/job.ts'
import { inThisContext } from '../values/runtime/async-context.ts'
import { isError } from '../values/runtime/realms.ts'
import type { Attempt } from './attempt.ts'
import { EncodedResult } from './encoded-result.ts'
import { completed, failed, released, type Untold } from './ending.ts'
import { isOutcome, NotStarted, Outcome } from './outcome.ts'

export interface EndingSettings {
  queue: string
  /** Bytes of an encoded result or progress report. */
  maxPayload: number
  /** Milliseconds before the next attempt, where this process computes them; undefined: the queue's policy in the store does. */
  backoff: ((attempt: number, error: unknown) => number) | undefined
}

type Told = Pick<PondEmitter, 'trouble' | 'failure'>

export type EndingRules = ReturnType<typeof endingRules>

export function endingRules({ queue, maxPayload, ...settings }: EndingSettings, told: Told) {
  const backoff = settings.backoff && inThisContext(settings.backoff)

  function delayOf({ claimed }: Attempt, error: unknown): number | 'backoff' {
    if (backoff === undefined) return 'backoff'
    try {
      return backoff(claimed.attempt, error)
    } catch (thrown) {
      // The caller's backoff function is at fault; the job must not suffer for it.
      const message = `the backoff function of queue ${queue} failed: ${errorSummary(thrown)}`
      told.trouble(new MillpondError('InvalidOption', message, { thrown }))
      return 'backoff'
    }
  }

  /** @param error anything that can be thrown, or an Outcome */
  function ofError(attempt: Attempt, error: unknown): Untold {
    if (NotStarted.is(error)) return released(attempt)
    if (!isOutcome(error)) {
      const { claimed } = attempt
      told.failure(queue, error, claimed.attempt >= claimed.attempts)
      return failed(attempt, jobError(error), delayOf(attempt, error))
    }
    const { kind, delay, cause } = error
    if (kind === 'rateLimited') return released(attempt, delay ?? 0)
    const stored = jobError(isError(cause) ? cause : error)
    if (!(cause instanceof MillpondError)) stored.code = delay === null ? 'GaveUp' : 'HandlerFailed'
    return failed(attempt, stored, delay)
  }

  /** @param value the result, or an Outcome */
  function ofAnswer(attempt: Attempt, value: unknown): Untold {
    if (isOutcome(value)) return ofError(attempt, value)
    if (value === undefined) return completed(attempt, null, value)
    if (value instanceof EncodedResult) return completed(attempt, value.encoded, value)
    try {
      return completed(attempt, encode(value, 'result', maxPayload), value)
    } catch (error) {
      // The work is done, and doing it again would only end here again.
      return ofError(attempt, Outcome.giveUp(error))
    }
  }

  return { ofAnswer, ofError }
}
