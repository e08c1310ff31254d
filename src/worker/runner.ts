/** Runs one attempt through the handler and says how it ended. Touches neither slots nor the store's queue. */

import type { PondEmitter } from '../pond/events.ts'
import type { Encoded, HoldOutcome, Store, StoreTransaction } from '../store.ts'
import { decode, encode } from '../values/encoding.ts'
import { MillpondError } from '../values/errors.ts'
import { Job, jobError } from '../values/job.ts'
import { errorSummary } from '../values/safe-error.ts'
import { type StandardSchema, validate } from '../values/schema.ts'
import type { Attempt } from './attempt.ts'
import type { Context } from './context.ts'
import { type Committed, completed, type Ending, failed, released } from './ending-batches.ts'
import { isOutcome, Outcome } from './outcome.ts'
import type { Replica } from './replica.ts'

/** Runs one job. What it returns is the job's result. */
export type Handler<Data = unknown, Result = unknown> = (job: Job<Data>, ctx: Context) => Result | Promise<Result>

export interface RunnerSettings {
  queue: string
  /** Complete in the handler's own transaction. */
  transaction: boolean
  /** Handlers wait until it shows what their jobs' pushers committed. */
  replica?: Replica | undefined
  /** Bytes of an encoded result or progress report. */
  maxPayload: number
  schema: StandardSchema<unknown, unknown> | undefined
  /** Milliseconds before the next attempt, where this process computes them; undefined: the queue's policy in the store does. */
  backoff: ((attempt: number, error: unknown) => number) | undefined
}

/** How an attempt ended; undefined when it was over before the handler was: nothing is left to tell then. */
type Ended = (attempt: Attempt, ending: Ending | Committed | undefined) => void

export class Runner {
  readonly #store: Store
  readonly #settings: RunnerSettings
  readonly #handler: Handler
  readonly #ended: Ended
  readonly #told: Pick<PondEmitter, 'trouble' | 'failure'>

  constructor(
    store: Store,
    settings: RunnerSettings,
    handler: Handler,
    ended: Ended,
    told: Pick<PondEmitter, 'trouble' | 'failure'>,
  ) {
    this.#store = store
    this.#settings = settings
    this.#handler = handler
    this.#ended = ended
    this.#told = told
  }

  /** Calls `ended` exactly once, some time later. */
  run(attempt: Attempt): void {
    const { replica } = this.#settings
    if (replica === undefined) this.#start(attempt)
    else void this.#startWhenShown(attempt, replica)
  }

  async #startWhenShown(attempt: Attempt, replica: Replica): Promise<void> {
    attempt.heldBack = true
    attempt.reads = await replica.wait(attempt)
    attempt.heldBack = false
    if (attempt.over === undefined) this.#start(attempt)
    else this.#ended(attempt, undefined)
  }

  /** The job's timeout begins here. */
  #start(attempt: Attempt): void {
    const { timeout } = attempt.claimed
    // An open worker keeps the process alive; a closed one must not, whatever its handler still does.
    if (timeout !== null) attempt.timeout = setTimeout(() => this.#timedOut(attempt, timeout), timeout).unref()
    const { schema, transaction } = this.#settings
    const called = schema === undefined && !transaction ? this.#call(attempt) : this.#prepare(attempt)
    // An async function around this would cost as much as all else that is done here for a handler that does little.
    called.then(
      (value) => this.#returned(attempt, value),
      (error: unknown) => this.#threw(attempt, error),
    )
  }

  #timedOut(attempt: Attempt, timeout: number): void {
    // A commit under way decides by itself.
    if (attempt.ending || attempt.over !== undefined) return
    const { id } = attempt.claimed
    const error = new MillpondError('TimedOut', `job ${id} ran longer than its timeout of ${timeout} ms`, { id })
    const ending = this.#ending(attempt, error)
    attempt.end(error)
    this.#ended(attempt, ending)
  }

  /** The handler has ended. */
  #end(attempt: Attempt, ending: Ending | Committed | undefined): void {
    if (attempt.timeout !== undefined) clearTimeout(attempt.timeout)
    if (ending !== undefined || attempt.over?.code !== 'TimedOut') this.#ended(attempt, ending)
  }

  /** Never throws: whatever the handler throws is in the promise. */
  #call(attempt: Attempt): Promise<unknown> {
    try {
      const data = decode(attempt.claimed.data, 'data')
      return Promise.resolve(this.#handler(new Job(this.#settings.queue, attempt.claimed, data), attempt))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #prepare(attempt: Attempt): Promise<unknown> {
    const { queue, schema, transaction } = this.#settings
    let data = decode(attempt.claimed.data, 'data')
    if (schema !== undefined) data = await validate(schema, data, queue)
    if (transaction) attempt.transaction = this.#store.transactions?.begin()
    return this.#handler(new Job(queue, attempt.claimed, data), attempt)
  }

  #returned(attempt: Attempt, value: unknown): void {
    if (attempt.over !== undefined || isOutcome(value)) {
      this.#threw(attempt, value)
      return
    }
    let result: Encoded | null
    try {
      result = this.#result(value)
    } catch (error) {
      this.#threw(attempt, error)
      return
    }
    if (attempt.transaction === undefined) this.#end(attempt, completed(attempt, result, value))
    else void this.#commit(attempt, attempt.transaction, result, value)
  }

  async #commit(
    attempt: Attempt,
    transaction: StoreTransaction,
    result: Encoded | null,
    value: unknown,
  ): Promise<void> {
    const { id, fence } = attempt.claimed
    attempt.ending = true
    let outcome: HoldOutcome
    try {
      outcome = await transaction.complete(this.#settings.queue, { id, fence, result })
    } catch (error) {
      this.#threw(attempt, error)
      return
    }
    this.#end(attempt, { kind: 'committed', attempt, value, outcome })
  }

  #threw(attempt: Attempt, error: unknown): void {
    if (attempt.over !== undefined) this.#end(attempt, undefined)
    else if (attempt.transaction === undefined) this.#end(attempt, this.#ending(attempt, error))
    else void this.#rollBack(attempt, attempt.transaction, error)
  }

  async #rollBack(attempt: Attempt, transaction: StoreTransaction, error: unknown): Promise<void> {
    attempt.ending = true
    try {
      await transaction.rollback()
    } catch (failure) {
      if (failure instanceof MillpondError) this.#told.trouble(failure)
    }
    this.#end(attempt, this.#ending(attempt, error))
  }

  /** @throws Outcome: the work is done, and doing it again would only end here again */
  #result(value: unknown): Encoded | null {
    if (value === undefined) return null
    try {
      return encode(value, 'result', this.#settings.maxPayload)
    } catch (error) {
      throw Outcome.giveUp(error)
    }
  }

  #ending(attempt: Attempt, error: unknown): Ending {
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
