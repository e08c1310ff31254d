/** Runs one attempt through the handler and says how it ended. Touches neither slots nor the store's queue. */
import type { Attempt } from './attempt.ts'
import type { Context } from './context.ts'
import { shown } from './duration.ts'
import { decode, encode } from './encoding.ts'
import { MillpondError } from './errors.ts'
import { Job, jobError } from './job.ts'
import { isOutcome, Outcome } from './outcome.ts'
import { type StandardSchema, validate } from './schema.ts'
import type { Committed, Ending } from './settler.ts'
import type { Encoded, Store, StoreTransaction } from './store.ts'

/** Runs one job. What it returns is the job's result. */
export type Handler<Data = unknown, Result = unknown> = (job: Job<Data>, ctx: Context) => Result | Promise<Result>

export interface RunnerSettings {
  queue: string
  /** Complete in the handler's own transaction. */
  transaction: boolean
  /** Bytes of an encoded result or progress report. */
  maxPayload: number
  schema: StandardSchema<unknown, unknown> | undefined
  /** Milliseconds before the next attempt. */
  backoff: (attempt: number, error: unknown) => number
}

/** How an attempt ended; undefined when it was over before the handler was: nothing is left to tell then. */
type Ended = (attempt: Attempt, ending: Ending | Committed | undefined) => void

export class Runner {
  readonly #store: Store
  readonly #settings: RunnerSettings
  readonly #handler: Handler
  readonly #ended: Ended
  readonly #trouble: (error: MillpondError) => void

  constructor(
    store: Store,
    settings: RunnerSettings,
    handler: Handler,
    ended: Ended,
    trouble: (error: MillpondError) => void,
  ) {
    this.#store = store
    this.#settings = settings
    this.#handler = handler
    this.#ended = ended
    this.#trouble = trouble
  }

  /** Calls `ended` exactly once, some time later. */
  run(attempt: Attempt): void {
    const { timeout } = attempt.claimed
    if (timeout === null) void this.#run(attempt, this.#ended)
    else this.#limited(attempt, timeout)
  }

  async #run(attempt: Attempt, ended: Ended): Promise<void> {
    const { queue, schema, transaction } = this.#settings
    let ending: Ending | Committed | undefined
    try {
      let data = decode(attempt.claimed.data, 'data')
      if (schema !== undefined) data = await validate(schema, data, queue)
      if (transaction) attempt.transaction = this.#store.transactions?.begin()
      const value = await this.#handler(new Job(queue, attempt.claimed, data), attempt)
      if (attempt.over === undefined) {
        if (isOutcome(value)) throw value
        const result = this.#result(value)
        if (attempt.transaction === undefined) ending = { kind: 'complete', attempt, result, value }
        else ending = await this.#commit(attempt, attempt.transaction, result, value)
      }
    } catch (error) {
      if (attempt.over === undefined) ending = await this.#failed(attempt, error)
    }
    ended(attempt, ending)
  }

  async #commit(
    attempt: Attempt,
    transaction: StoreTransaction,
    result: Encoded | null,
    value: unknown,
  ): Promise<Committed> {
    const { id, fence } = attempt.claimed
    attempt.settling = true
    const outcome = await transaction.complete(this.#settings.queue, { id, fence, result })
    return { kind: 'committed', attempt, value, outcome }
  }

  #limited(attempt: Attempt, timeout: number): void {
    const timer = setTimeout(() => {
      // A commit under way decides by itself.
      if (attempt.settling || attempt.over !== undefined) return
      const { id } = attempt.claimed
      const error = new MillpondError('TimedOut', `job ${id} ran longer than its timeout of ${timeout} ms`, { id })
      const ending = this.#ending(attempt, error)
      attempt.end(error)
      this.#ended(attempt, ending)
    }, timeout)
    void this.#run(attempt, (_, ending) => {
      clearTimeout(timer)
      if (ending !== undefined || attempt.over?.code !== 'TimedOut') this.#ended(attempt, ending)
    })
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

  async #failed(attempt: Attempt, error: unknown): Promise<Ending> {
    attempt.settling = true
    try {
      await attempt.transaction?.rollback()
    } catch (failure) {
      if (failure instanceof MillpondError) this.#trouble(failure)
    }
    return this.#ending(attempt, error)
  }

  #ending(attempt: Attempt, error: unknown): Ending {
    if (!isOutcome(error)) {
      return { kind: 'fail', attempt, error: jobError(error), delay: this.#delay(attempt, error) }
    }
    const { delay, cause } = error
    const stored = jobError(cause instanceof Error ? cause : error)
    if (!(cause instanceof MillpondError)) stored.code = delay === null ? 'GaveUp' : 'HandlerFailed'
    return { kind: 'fail', attempt, error: stored, delay }
  }

  #delay(attempt: Attempt, error: unknown): number {
    try {
      return this.#settings.backoff(attempt.claimed.attempt, error)
    } catch (cause) {
      // The caller's backoff function is at fault; the job must not suffer for it.
      const message = `the backoff function of queue ${this.#settings.queue} failed: ${shown(cause)}`
      this.#trouble(new MillpondError('InvalidOption', message, { cause }))
      return 1000
    }
  }
}
