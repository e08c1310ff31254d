import type { ReplicaQuery, TransactionQuery } from '../store.ts'
import type { ParentJob } from '../values/jobs/parent-jobs.ts'
import type { Duration } from '../values/time/duration.ts'
import type { Outcome } from './outcome.ts'
import type { Steps } from './steps/step-context.ts'

/** How a handler ends a job otherwise than by a result or an error. Return or throw the outcome. */
export interface Outcomes {
  /**
   * This attempt has failed, and the next one is due after `delay`, whatever the backoff says. With no attempt left, the job is dead.
   * @param delay 0 to 100 years
   * @param reason kept as the job's error
   * @throws InvalidOption
   */
  retry(delay: Duration, reason?: unknown): Outcome
  /** The job is dead at once. @param reason kept as the job's error */
  giveUp(reason?: unknown): Outcome
  /**
   * The other side says that there were too many requests (429). The job waits again, without an attempt being counted, and its group
   * starts no job for `pause`. The queue pauses instead if the job has no group or groups do not take turns there. All workers obey.
   * @param pause 1 ms to 24 days
   * @throws InvalidOption, NotSupported (a store without limits)
   */
  rateLimited(pause: Duration): Outcome
}

/** What a handler can do besides returning. */
export interface Context extends Outcomes, Steps {
  /**
   * Aborted when the attempt is over before the handler is. Its `reason` is a MillpondError: `StaleAttempt` (the lease was lost),
   * `JobCancelled`, `TimedOut`, or `Closed` (the worker's `close` has reached its `timeout`).
   */
  readonly signal: AbortSignal
  /**
   * Reports how far the job is: any value that can be encoded, at most `maxPayload` bytes. It is seen in `pond.job(id)` within about half a
   * second; of several reports in that time, the last one counts.
   * @throws PayloadNotEncodable, PayloadTooLarge
   */
  progress(value: unknown): void
  /**
   * Adds a line to the job's log, of which the store keeps the last 100 lines, 64 KiB at most, over all attempts; `pond.job(id)` has them.
   * Lines go along with the next extension of the lease, or with the job's end, about a second later at most. Those of an attempt whose
   * lease is lost meanwhile are lost. Never throws: a message of more than 2,000 characters is shortened, fields of more than 4,000
   * characters of JSON, or that are no JSON, are left out; then the line is marked as `cut`. An Error in the fields is kept as its name and
   * message.
   * A store without the capability `logs` drops the lines.
   */
  log(message: string, fields?: Readonly<Record<string, unknown>>): void
  /**
   * The jobs that this one has waited for, with their results and errors, by id; 10,000 at most. Those that the store keeps no longer are
   * left out. The type of their results is the caller's word for it.
   * @throws NotSupported (a store without `graphs`), `Store…`
   */
  parents<Result = unknown>(): Promise<ParentJob<Result>[]>
  /**
   * With `transaction: true`: runs a statement in the transaction that commits together with the job's completion. The first call begins
   * it. In SQLite the transaction holds the database's only write lock until the handler returns, so do the slow part first.
   * @throws InvalidOption (no `transaction: true`, a parameter of a wrong type, a statement that begins or ends a transaction),
   * TransactionMismatch (the handler has returned), StaleAttempt, JobCancelled, TimedOut or Closed (the attempt is over; as
   * `signal.reason`), `Store…`; on PostgreSQL also an error with the SQLSTATE as `code`
   */
  readonly tx: TransactionQuery
  /**
   * With `replica`: runs a reading statement on the replica, which shows everything that was committed before the job was pushed. If the
   * replica is too late or cannot be reached, the statement runs on the primary; `ctx.replica.primary` says which of them is read.
   * @throws InvalidOption (no `replica`), `Store…`; on PostgreSQL also an error with the SQLSTATE as `code`
   */
  readonly replica: ReplicaQuery
}
