/** Runs one attempt through the handler and says how it ended. Touches neither slots nor the store's queue. */

import type { Encoded, HoldOutcome, StoreTransaction } from '../store.ts'
import { inThisContext } from '../values/async-context.ts'
import { decode } from '../values/encoding.ts'
import { Job } from '../values/job.ts'
import type { Attempt } from './attempt.ts'
import type { Context } from './context.ts'
import { type Committed, completed, type Ending } from './ending-batches.ts'
import { isOutcome } from './outcome.ts'
import type { Replica } from './replica.ts'
import { RunnerBase } from './runner-base.ts'

/** Runs one job. What it returns is the job's result. */
export type Handler<Data = unknown, Result = unknown> = (job: Job<Data>, ctx: Context) => Result | Promise<Result>

export class Runner extends RunnerBase<Handler> {
  /** Calls `ended` exactly once, some time later. */
  readonly run = inThisContext((attempt: Attempt): void => {
    const { replica } = this.settings
    if (replica === undefined) this.#start(attempt)
    else void this.#startWhenShown(attempt, replica)
  })

  async #startWhenShown(attempt: Attempt, replica: Replica): Promise<void> {
    attempt.heldBack = true
    attempt.reads = await replica.wait(attempt)
    attempt.heldBack = false
    if (attempt.over === undefined) this.#start(attempt)
    else this.ended([])
  }

  /** The job's timeout begins here. */
  #start(attempt: Attempt): void {
    this.watchTimeout(attempt)
    const { schema, transaction } = this.settings
    const called = schema === undefined && !transaction ? this.#call(attempt) : this.#prepare(attempt)
    // An async function around this would cost as much as all else that is done here for a handler that does little.
    called.then(
      (value) => this.#returned(attempt, value),
      (error: unknown) => this.#threw(attempt, error),
    )
  }

  /** The handler has ended. @param ending undefined: the attempt was over before it was */
  #end(attempt: Attempt, ending: Ending | Committed | undefined): void {
    if (attempt.timeout !== undefined) clearTimeout(attempt.timeout)
    if (ending !== undefined) this.ended([ending])
    else if (attempt.over?.code !== 'TimedOut') this.ended([])
  }

  /** Never throws: whatever the handler throws is in the promise. */
  #call(attempt: Attempt): Promise<unknown> {
    try {
      const data = decode(attempt.claimed.data, 'data')
      return Promise.resolve(this.handler(new Job(this.settings.queue, attempt.claimed, data), attempt))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #prepare(attempt: Attempt): Promise<unknown> {
    const job = await this.jobOf(attempt)
    if (this.settings.transaction) attempt.transaction = this.store.transactions?.begin()
    return this.handler(job, attempt)
  }

  #returned(attempt: Attempt, value: unknown): void {
    if (attempt.over !== undefined || isOutcome(value)) {
      this.#threw(attempt, value)
      return
    }
    let result: Encoded | null
    try {
      result = this.result(value)
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
    let outcome: HoldOutcome | undefined
    try {
      ;[outcome] = await transaction.complete({ queue: this.settings.queue, items: [{ id, fence, result }] })
    } catch (error) {
      this.#threw(attempt, error)
      return
    }
    this.#end(attempt, { kind: 'committed', attempt, value, outcome: outcome ?? 'stale' })
  }

  #threw(attempt: Attempt, error: unknown): void {
    if (attempt.over !== undefined) this.#end(attempt, undefined)
    else if (attempt.transaction === undefined) this.#end(attempt, this.failed(attempt, error))
    else void this.#failAfterRollback(attempt, attempt.transaction, error)
  }

  async #failAfterRollback(attempt: Attempt, transaction: StoreTransaction, error: unknown): Promise<void> {
    attempt.ending = true
    await this.rollBack(transaction)
    this.#end(attempt, this.failed(attempt, error))
  }
}
