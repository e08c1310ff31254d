import type { StoreTransaction, TransactionQuery } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { Job } from '../values/jobs/job.ts'
import { shown } from '../values/time/duration.ts'
import { AttemptContext, queryOf, type RunnerTerms } from './attempt-context.ts'
import type { Batch } from './batch.ts'
import type { Context, Outcomes } from './context.ts'
import { Outcome } from './outcome.ts'
import { signalOf } from './stop-signal.ts'

/**
 * Runs several jobs. Its answer has an entry for each job: an array in their order, or a Map by job id. Other entries of a Map do not
 * count.
 *
 *   an Outcome             of `ctx.retry`, `ctx.giveUp` or `ctx.rateLimited`, for this job
 *   an Error               this job failed; the next attempt follows by the queue's backoff
 *   anything else          the job's result
 *
 * The answer `undefined`: all jobs are done, without results. A job without an entry fails with `BatchMismatch`. So do all jobs if the
 * array is longer than `jobs`, or if the answer is something else. If the handler throws, all jobs fail. An Outcome, thrown or returned, is
 * for all jobs.
 */
export type BatchHandler<Data = unknown> = (jobs: Job<Data>[], ctx: BatchContext) => BatchAnswer | Promise<BatchAnswer>

// biome-ignore lint/suspicious/noConfusingVoidType: a handler without `return` is fine.
export type BatchAnswer = readonly unknown[] | ReadonlyMap<string, unknown> | Outcome | undefined | void

/**
 * What a batch handler can do besides returning. An outcome is for one job if it is the job's entry of the answer. It is for all jobs, with
 * the groups of all, if it is returned or thrown.
 */
export interface BatchContext extends Outcomes {
  /**
   * Aborted when every job of the batch is over before the handler is. Its `reason` is that of the last job: `StaleAttempt`,
   * `JobCancelled`, `TimedOut`, or `Closed` (the worker's `close` has reached its `timeout`).
   */
  readonly signal: AbortSignal
  /**
   * The context of one job. Its `signal` is aborted when this job is over; the handler goes on for the others.
   * @throws InvalidOption: the job is not of this batch
   */
  of(job: Pick<Job, 'id'>): Context
  /**
   * With `transaction: true`: runs a statement in the transaction of the batch, as `Context.tx` does. It commits together with the
   * completion of all jobs that are answered as done. Jobs answered with an Error or Outcome end after that. With no job done, it is rolled
   * back. If a job that was answered as done is over, or its result cannot be stored, nothing is committed: the other jobs wait again,
   * without an attempt being counted.
   * @throws as `Context.tx`
   */
  readonly tx: TransactionQuery
}

export function batchContext(
  batch: Batch,
  terms: RunnerTerms,
  transaction: StoreTransaction | undefined,
): BatchContext {
  const byId = new Map(batch.attempts.map((attempt) => [attempt.claimed.id, attempt]))
  let signal: AbortSignal | undefined
  return {
    get signal() {
      signal ??= signalOf(batch)
      return signal
    },
    of({ id }) {
      const attempt = byId.get(id)
      if (attempt !== undefined) return attempt.context ?? new AttemptContext(attempt, terms, transaction)
      throw new MillpondError('InvalidOption', `ctx.of takes a job of this batch; got one with the id ${shown(id)}`)
    },
    get tx() {
      return queryOf(transaction, batch.stopped)
    },
    retry: Outcome.retry,
    giveUp: Outcome.giveUp,
    rateLimited(pause) {
      terms.assertRates()
      return Outcome.rateLimited(pause)
    },
  }
}
