import type { Context } from './context.ts'
import type { Duration } from './duration.ts'
import { encode } from './encoding.ts'
import { MillpondError } from './errors.ts'
import type { Linked, LinkedList } from './linked-list.ts'
import { Outcome } from './outcome.ts'
import type { ClaimedJob, Encoded, ReplicaQuery, StoreTransaction, TransactionQuery } from './store.ts'

/** Sends what handlers report. */
export interface Reporter {
  reportSoon(): void
}

/** A claimed job while this worker holds it: buffered, then running, then settling, then let go. */
export class Attempt implements Context, Linked<Attempt> {
  /** Its place among the running ones; null: it isn't one. */
  prev: Attempt | null = null
  next: Attempt | null = null
  list: LinkedList<Attempt> | null = null
  readonly claimed: ClaimedJob
  /** `performance.now()` at which the claim arrived. */
  readonly arrived: number
  /** `performance.now()` until which the lease holds for certain; past it, the store decides. */
  heldUntil: number
  /** Wait already behind it on arrival, in milliseconds by the store's clock. */
  readonly #waited: number
  /** `performance.now()` at which the handler was called. */
  startedAt = 0
  finishedAt = 0
  /** Told by the handler, not yet by us. */
  unreported: Encoded | null = null
  transaction: StoreTransaction | undefined
  /** It has a slot, but its handler is not called before the replica is ready for it. */
  heldBack = false
  reads: ReplicaQuery | undefined
  /** Its ending is on the way to the store. */
  settling = false
  #over: MillpondError | undefined
  #controller: AbortController | undefined
  readonly #maxPayload: number
  readonly #reporter: Reporter

  constructor(
    claimed: ClaimedJob,
    now: number,
    arrived: number,
    heldUntil: number,
    maxPayload: number,
    reporter: Reporter,
  ) {
    this.claimed = claimed
    this.arrived = arrived
    this.heldUntil = heldUntil
    this.#waited = now - claimed.dueAt
    this.#maxPayload = maxPayload
    this.#reporter = reporter
  }

  /** Milliseconds from due to started. */
  get wait(): number {
    return Math.max(0, this.#waited + this.startedAt - this.arrived)
  }

  get run(): number {
    return this.finishedAt - this.startedAt
  }

  /** Set once nothing that the handler still does counts. */
  get over(): MillpondError | undefined {
    return this.#over
  }

  end(reason: MillpondError): void {
    if (this.#over !== undefined) return
    this.#over = reason
    // If even the rollback fails, the store has let go of the transaction by itself.
    this.transaction?.rollback().catch(() => {})
    this.#controller?.abort(reason)
  }

  // Made when first asked for: most handlers never look, and a controller costs more than the rest of an attempt.
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#over !== undefined) this.#controller.abort(this.#over)
    }
    return this.#controller.signal
  }

  progress(value: unknown): void {
    this.unreported = encode(value, 'progress', this.#maxPayload)
    this.#reporter.reportSoon()
  }

  retry(delay: Duration, reason?: unknown): Outcome {
    return Outcome.retry(delay, reason)
  }

  giveUp(reason?: unknown): Outcome {
    return Outcome.giveUp(reason)
  }

  get tx(): TransactionQuery {
    const { transaction } = this
    if (transaction === undefined) {
      throw new MillpondError('InvalidOption', 'ctx.tx needs a worker opened with transaction: true')
    }
    if (this.#over !== undefined) throw this.#over
    return transaction.query
  }

  get replica(): ReplicaQuery {
    if (this.reads === undefined) {
      throw new MillpondError('InvalidOption', 'ctx.replica needs a worker opened with replica')
    }
    return this.reads
  }
}
