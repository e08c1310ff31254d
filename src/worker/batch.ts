import type { StoreTransaction, TransactionQuery } from '../store.ts'
import { inThisContext } from '../values/async-context.ts'
import { type Duration, shown } from '../values/duration.ts'
import { MillpondError } from '../values/errors.ts'
import type { Job } from '../values/job.ts'
import type { Attempt, AttemptBatch } from './attempt.ts'
import type { BatchContext } from './batch-context.ts'
import type { Context } from './context.ts'
import { Outcome } from './outcome.ts'

/** Attempts that one call of a batch handler runs, and that handler's context. It is over when each of them is over before the handler is. */
export class Batch implements BatchContext, AttemptBatch {
  readonly attempts: readonly Attempt[]
  transaction: StoreTransaction | undefined
  readonly #byId: ReadonlyMap<string, Attempt>
  readonly #controller = new AbortController()
  #abort = (reason: MillpondError) => this.#controller.abort(reason)
  readonly #ended: () => void
  readonly retry = Outcome.retry
  readonly giveUp = Outcome.giveUp
  #running: number

  /** @param ended called once none of the attempts runs any more */
  constructor(attempts: readonly Attempt[], ended: () => void) {
    this.attempts = attempts
    this.#ended = ended
    this.#byId = new Map(attempts.map((attempt) => [attempt.claimed.id, attempt]))
    this.#running = attempts.length
  }

  left(by: Attempt): void {
    this.#running--
    if (this.#running > 0) return
    this.#ended()
    if (by.over === undefined) return
    // If even the rollback fails, the store has let go of the transaction by itself.
    this.transaction?.rollback().catch(() => {})
    this.#abort(by.over)
  }

  get signal(): AbortSignal {
    // Its listeners run in the handler's context, not in that of a caller who cancels a job.
    this.#abort = inThisContext((reason: MillpondError) => this.#controller.abort(reason))
    return this.#controller.signal
  }

  of(job: Pick<Job, 'id'>): Context {
    const attempt = this.#byId.get(job.id)
    if (attempt !== undefined) return attempt
    throw new MillpondError('InvalidOption', `ctx.of takes a job of this batch; got one with the id ${shown(job.id)}`)
  }

  rateLimited(pause: Duration): Outcome {
    const [first] = this.attempts
    return first?.rateLimited(pause) ?? Outcome.rateLimited(pause)
  }

  get tx(): TransactionQuery {
    if (this.transaction === undefined) {
      throw new MillpondError('InvalidOption', 'ctx.tx needs a worker opened with transaction: true')
    }
    this.signal.throwIfAborted()
    return this.transaction.query
  }
}
