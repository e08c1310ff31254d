/** Runs one attempt through the handler and says how it ended. Touches neither slots nor the store's queue. */
import type { Attempt } from './attempt.ts'
import type { Context } from './context.ts'
import { decode, encode } from './encoding.ts'
import { MillpondError } from './errors.ts'
import { Job, jobError } from './job.ts'
import { Outcome } from './outcome.ts'
import { type StandardSchema, validate } from './schema.ts'
import type { Committed, Ending } from './settler.ts'
import type { Encoded, Store } from './store.ts'

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

type Ended = Ending | Committed | undefined

export class Runner {
  readonly #store: Store
  readonly #settings: RunnerSettings
  readonly #handler: Handler
  readonly #trouble: (error: MillpondError) => void

  constructor(store: Store, settings: RunnerSettings, handler: Handler, trouble: (error: MillpondError) => void) {
    this.#store = store
    this.#settings = settings
    this.#handler = handler
    this.#trouble = trouble
  }

  /** Never rejects. Undefined when the attempt was over before the handler was: nothing is left to tell then. */
  run(attempt: Attempt): Promise<Ended> {
    const { timeout } = attempt.claimed
    return timeout === null ? this.#run(attempt) : this.#limited(attempt, timeout)
  }

  async #run(attempt: Attempt): Promise<Ended> {
    const { queue, schema, transaction } = this.#settings
    try {
      let data = decode(attempt.claimed.data, 'data')
      if (schema !== undefined) data = await validate(schema, data, queue)
      if (transaction) attempt.transaction = this.#store.transactions?.begin()
      const value = await this.#handler(new Job(queue, attempt.claimed, data), attempt)
      if (attempt.over !== undefined) return undefined
      if (value instanceof Outcome) return await this.#failed(attempt, value)
      const result = this.#result(value)
      if (attempt.transaction === undefined) return { kind: 'complete', attempt, result, value }
      const { id, fence } = attempt.claimed
      attempt.settling = true
      const outcome = await attempt.transaction.complete(queue, { id, fence, result })
      return { kind: 'committed', attempt, value, outcome }
    } catch (error) {
      if (attempt.over !== undefined) return undefined
      return this.#failed(attempt, error)
    }
  }

  #limited(attempt: Attempt, timeout: number): Promise<Ended> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        // A commit under way decides by itself.
        if (attempt.settling || attempt.over !== undefined) return
        const { id } = attempt.claimed
        const error = new MillpondError('TimedOut', `job ${id} ran longer than its timeout of ${timeout} ms`, { id })
        const ending = this.#ending(attempt, error)
        attempt.end(error)
        resolve(ending)
      }, timeout)
      void this.#run(attempt).then((ended) => {
        clearTimeout(timer)
        resolve(ended)
      })
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
    if (!(error instanceof Outcome)) {
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
      const message = `the backoff function of queue ${this.#settings.queue} failed: ${cause}`
      this.#trouble(new MillpondError('InvalidOption', message, { cause }))
      return 1000
    }
  }
}
