import type { ReplicaQuery, TransactionQuery } from '../store.ts'
import type { Duration } from '../values/duration.ts'
import type { Outcome } from './outcome.ts'

/** What a handler can do besides returning. */
export interface Context {
  /**
   * Aborted when the attempt is over before the handler is. Its `reason` is a MillpondError: `StaleAttempt` (the lease was
   * lost), `JobCancelled`, `TimedOut`, or `Closed` (the worker closes and has no more time).
   */
  readonly signal: AbortSignal
  /** Tells how far the job is; anything that can be encoded. Others see it in `pond.job(id)` within half a second or so. @throws PayloadNotEncodable, PayloadTooLarge */
  progress(value: unknown): void
  /** Return or throw it: another attempt after the delay. It counts as one. @throws InvalidOption */
  retry(delay: Duration, reason?: unknown): Outcome
  /** Return or throw it: the job is dead at once. */
  giveUp(reason?: unknown): Outcome
  /**
   * With `transaction: true`: runs a statement in the transaction that commits together with the job's completion. The first call
   * begins it; in SQLite it then holds the database's only write lock until the handler returns, so do the slow part before.
   * @throws InvalidOption without `transaction: true`, StaleAttempt once the attempt is over
   */
  readonly tx: TransactionQuery
  /**
   * With `replica`: runs a reading statement on the replica, which shows everything that was committed before the job was pushed.
   * Where it does not in time, or cannot be reached, the statement runs on the primary; `ctx.replica.primary` tells which.
   * @throws InvalidOption without `replica`
   */
  readonly replica: ReplicaQuery
}
