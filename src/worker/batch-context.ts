import type { StoreTransaction, TransactionQuery } from '../store.ts'
import { type Duration, shown } from '../values/duration.ts'
import { MillpondError } from '../values/errors.ts'
import type { Job } from '../values/job.ts'
import { AttemptContext, type ContextTerms, queryOf, signalOf } from './attempt-context.ts'
import type { Batch } from './batch.ts'
import type { Context, Outcomes } from './context.ts'
import { Outcome } from './outcome.ts'

/**
 * Runs several jobs. Its answer has an entry for each job: an array in their order, or a Map by job id, whose other entries do not count.
 *
 *   an Outcome             of `ctx.retry`, `ctx.giveUp` or `ctx.rateLimited`, for this job
 *   an Error               this job failed; the next attempt follows by the queue's backoff
 *   anything else          the job's result
 *
 * `undefined` as the answer: all jobs are done, without results. A job without an entry fails with `BatchMismatch`; so do all jobs if the array is
 * longer than `jobs`, or if the answer is something else. If the handler throws, all jobs fail; an Outcome, thrown or returned, is for all jobs.
 */
export type BatchHandler<Data = unknown> = (jobs: Job<Data>[], ctx: BatchContext) => BatchAnswer | Promise<BatchAnswer>

// biome-ignore lint/suspicious/noConfusingVoidType: a handler without `return` is fine.
export type BatchAnswer = readonly unknown[] | ReadonlyMap<string, unknown> | Outcome | undefined | void

/**
 * What a batch handler can do besides returning. An outcome is for one job if it is its entry of the answer, and for all jobs, with the groups of
 * all, if it is returned or thrown.
 */
export interface BatchContext extends Outcomes {
  /**
   * Aborted when every job of the batch is over before the handler is. Its `reason` is that of the last job: `StaleAttempt`, `JobCancelled`,
   * `TimedOut`, or `Closed` (the worker's `close` has reached its `timeout`).
   */
  readonly signal: AbortSignal
  /**
   * The context of one job. Its `signal` is aborted when this job is over; the handler goes on for the others.
   * @throws InvalidOption: the job is not of this batch
   */
  of(job: Pick<Job, 'id'>): Context
  /**
   * With `transaction: true`: runs a statement in the transaction of the batch, as `Context.tx` does. It commits together with the completion of all
   * jobs that are answered as done. Jobs answered with an Error or Outcome end after that; with no job done it is rolled back. If a job that
   * was answered as done is over, or its result cannot be stored, nothing is committed, and the other jobs wait again, without an attempt being counted.
   * @throws as `Context.tx`
   */
  readonly tx: TransactionQuery
}

export class RunningBatchContext implements BatchContext {
  readonly #batch: Batch
  readonly #terms: ContextTerms
  readonly #transaction: StoreTransaction | undefined
  #signal: AbortSignal | undefined
  readonly retry = Outcome.retry
  readonly giveUp = Outcome.giveUp

  constructor(batch: Batch, terms: ContextTerms, transaction: StoreTransaction | undefined) {
    this.#batch = batch
    this.#terms = terms
    this.#transaction = transaction
  }

  get signal(): AbortSignal {
    this.#signal ??= signalOf(this.#batch)
    return this.#signal
  }

  of(job: Pick<Job, 'id'>): Context {
    const attempt = this.#batch.byId(job.id)
    if (attempt !== undefined) return attempt.context ?? new AttemptContext(attempt, this.#terms, this.#transaction)
    throw new MillpondError('InvalidOption', `ctx.of takes a job of this batch; got one with the id ${shown(job.id)}`)
  }

  rateLimited(pause: Duration): Outcome {
    this.#terms.assertRates()
    return Outcome.rateLimited(pause)
  }

  get tx(): TransactionQuery {
    return queryOf(this.#transaction, this.#batch.stopped)
  }
}
