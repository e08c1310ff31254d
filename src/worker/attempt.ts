import type { ClaimedJob, Encoded, ReplicaQuery, StoreTransaction, TransactionQuery } from '../store.ts'
import { inThisContext } from '../values/async-context.ts'
import type { Duration } from '../values/duration.ts'
import { encode } from '../values/encoding.ts'
import { MillpondError } from '../values/errors.ts'
import type { Linked, LinkedList } from '../values/linked-list.ts'
import type { Context } from './context.ts'
import { Outcome } from './outcome.ts'

/** What the attempts of one worker have in common. */
export interface AttemptTerms {
  /** Bytes of an encoded progress report. */
  readonly maxPayload: number
  /** A handler has something to report. */
  reportSoon(): void
  /** @throws NotSupported: the store has no rates */
  assertRates(): void
}

/** What the attempts of one claim have in common. */
export interface Arrival {
  /** The store's time of the claim. */
  readonly now: number
  /** `performance.now()` at which it arrived. */
  readonly at: number
  /** `performance.now()` until which its leases hold for certain. */
  readonly heldUntil: number
}

/** The batch that an attempt runs in. */
export interface AttemptBatch {
  readonly transaction: StoreTransaction | undefined
  /** The attempt runs no more. */
  left(by: Attempt): void
}

/** A claimed job while this worker holds it: buffered, then running, then ending, then let go. */
export class Attempt implements Context, Linked<Attempt> {
  /** Its place among the buffered ones, then among the running ones; null: it is neither. */
  prev: Attempt | null = null
  next: Attempt | null = null
  list: LinkedList<Attempt> | null = null
  readonly claimed: ClaimedJob
  readonly #arrival: Arrival
  readonly #terms: AttemptTerms
  /** `performance.now()` until which its lease holds for certain; past it, the store decides. */
  heldUntil: number
  /** `performance.now()` at which the handler was called, and at which it ended. Not a number before: a field that holds a fraction later costs less if it never held an integer. */
  startedAt = Number.NaN
  finishedAt = Number.NaN
  /** Told by the handler, not yet by us. */
  unreported: Encoded | null = null
  /** Ends it when its handler has run for too long. */
  timeout: NodeJS.Timeout | undefined
  transaction: StoreTransaction | undefined
  /** With a batch handler, once it runs. */
  batch: AttemptBatch | undefined
  /** It has a slot, but its handler is not called before the replica is ready for it. */
  heldBack = false
  reads: ReplicaQuery | undefined
  /** Its ending is on the way to the store. */
  ending = false
  #over: MillpondError | undefined
  #controller: AbortController | undefined
  #abort: ((reason: MillpondError) => void) | undefined

  constructor(claimed: ClaimedJob, arrival: Arrival, terms: AttemptTerms) {
    this.claimed = claimed
    this.#arrival = arrival
    this.heldUntil = arrival.heldUntil
    this.#terms = terms
  }

  get arrived(): number {
    return this.#arrival.at
  }

  /** Milliseconds from due to started: first by the store's clock, from the arrival on by ours. */
  get wait(): number {
    const { now, at } = this.#arrival
    return Math.max(0, now - this.claimed.dueAt + this.startedAt - at)
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
    this.#abort?.(reason)
  }

  // Made when first asked for: most handlers never look, and a controller costs more than the rest of an attempt.
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController()
      this.#controller = controller
      // Its listeners run in the handler's context, not in that of a caller who cancels the job.
      this.#abort = inThisContext((reason: MillpondError) => controller.abort(reason))
    }
    if (this.#over !== undefined) this.#controller.abort(this.#over)
    return this.#controller.signal
  }

  progress(value: unknown): void {
    this.unreported = encode(value, 'progress', this.#terms.maxPayload)
    this.#terms.reportSoon()
  }

  retry(delay: Duration, reason?: unknown): Outcome {
    return Outcome.retry(delay, reason)
  }

  giveUp(reason?: unknown): Outcome {
    return Outcome.giveUp(reason)
  }

  rateLimited(pause: Duration): Outcome {
    this.#terms.assertRates()
    return Outcome.rateLimited(pause)
  }

  get tx(): TransactionQuery {
    const transaction = this.transaction ?? this.batch?.transaction
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
