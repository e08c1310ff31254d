/** What the runners of single jobs and of batches have in common: a job's data, its timeout, and which ending an answer or an error means. */

import type { Encoded, Store, StoreTransaction } from '../store.ts'
import { inThisContext } from '../values/async-context.ts'
import { decode, encode } from '../values/encoding.ts'
import { MillpondError } from '../values/errors.ts'
import type { PondEmitter } from '../values/events.ts'
import { Job, jobError } from '../values/job.ts'
import { isError } from '../values/realms.ts'
import { errorSummary } from '../values/safe-error.ts'
import { type StandardSchema, validate } from '../values/schema.ts'
import type { Attempt } from './attempt.ts'
import { type Committed, type Ending, failed, released } from './ending-batches.ts'
import { isOutcome, Outcome } from './outcome.ts'
import type { Replica } from './replica.ts'

export interface RunnerSettings {
  queue: string
  /** Bytes of an encoded result or progress report. */
  maxPayload: number
  /** Milliseconds before the next attempt, where this process computes them; undefined: the queue's policy in the store does. */
  backoff: ((attempt: number, error: unknown) => number) | undefined
  /** Complete in the handler's own transaction. */
  transaction: boolean
  /** Handlers wait until it shows what their jobs' pushers committed. */
  replica?: Replica | undefined
  schema: StandardSchema<unknown, unknown> | undefined
}

/** How attempts ended. One that was over before its handler is left out: nothing is left to tell then, but the handler has ended. */
type Ended = (endings: readonly (Ending | Committed)[]) => void

export abstract class RunnerBase<Handler> {
  protected readonly store: Store
  protected readonly settings: RunnerSettings
  protected readonly handler: Handler
  protected readonly ended: Ended
  readonly #told: Pick<PondEmitter, 'trouble' | 'failure'>

  constructor(
    store: Store,
    settings: RunnerSettings,
    handler: Handler,
    ended: Ended,
    told: Pick<PondEmitter, 'trouble' | 'failure'>,
  ) {
    this.store = store
    this.settings = { ...settings, backoff: settings.backoff && inThisContext(settings.backoff) }
    this.handler = handler
    this.ended = ended
    this.#told = told
  }

  /** @throws PayloadNotDecodable, SchemaMismatch */
  protected async jobOf({ claimed }: Attempt): Promise<Job> {
    const { queue, schema } = this.settings
    const data = decode(claimed.data, 'data')
    return new Job(queue, claimed, schema === undefined ? data : await validate(schema, data, queue))
  }

  /** The job's timeout begins. At its end the attempt has failed, unless it is ending or over by then. */
  protected watchTimeout(attempt: Attempt): void {
    const { id, timeout } = attempt.claimed
    if (timeout === null) return
    // An open worker keeps the process alive; a closed one must not, whatever its handler still does.
    attempt.timeout = setTimeout(() => {
      // A commit under way decides by itself.
      if (attempt.ending || attempt.over !== undefined) return
      const error = new MillpondError('TimedOut', `job ${id} ran longer than its timeout of ${timeout} ms`, { id })
      const ending = this.failed(attempt, error)
      attempt.end(error)
      this.ended([ending])
    }, timeout).unref()
  }

  /** @throws Outcome: the work is done, and doing it again would only end here again */
  protected result(value: unknown): Encoded | null {
    if (value === undefined) return null
    try {
      return encode(value, 'result', this.settings.maxPayload)
    } catch (error) {
      throw Outcome.giveUp(error)
    }
  }

  /** @param error whatever was thrown, or an Outcome */
  protected failed(attempt: Attempt, error: unknown): Ending {
    if (!isOutcome(error)) {
      const { claimed } = attempt
      this.#told.failure(this.settings.queue, error, claimed.attempt >= claimed.attempts)
      return failed(attempt, jobError(error), this.#delay(attempt, error))
    }
    const { kind, delay, cause } = error
    if (kind === 'rateLimited') return released(attempt, delay ?? 0)
    const stored = jobError(isError(cause) ? cause : error)
    if (!(cause instanceof MillpondError)) stored.code = delay === null ? 'GaveUp' : 'HandlerFailed'
    return failed(attempt, stored, delay)
  }

  protected async rollBack(transaction: StoreTransaction): Promise<void> {
    try {
      await transaction.rollback()
    } catch (failure) {
      if (failure instanceof MillpondError) this.#told.trouble(failure)
    }
  }

  #delay(attempt: Attempt, error: unknown): number | 'backoff' {
    const { backoff, queue } = this.settings
    if (backoff === undefined) return 'backoff'
    try {
      return backoff(attempt.claimed.attempt, error)
    } catch (thrown) {
      // The caller's backoff function is at fault; the job must not suffer for it.
      const message = `the backoff function of queue ${queue} failed: ${errorSummary(thrown)}`
      this.#told.trouble(new MillpondError('InvalidOption', message, { thrown }))
      return 'backoff'
    }
  }
}
