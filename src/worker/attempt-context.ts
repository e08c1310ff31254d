/** What a handler of single jobs is given beside its job. */

import type { ReplicaQuery, StoreTransaction, TransactionQuery } from '../store.ts'
import { encode } from '../values/encoding/encoding.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { ParentJob } from '../values/jobs/parent-jobs.ts'
import type { Park } from '../values/jobs/records.ts'
import type { Duration } from '../values/time/duration.ts'
import type { Attempt } from './attempt.ts'
import type { Context } from './context.ts'
import { Outcome } from './outcome.ts'
import { HandlerSteps } from './steps/handler-steps.ts'
import type { StepCalls } from './steps/journal-calls.ts'
import type { StepsHost } from './steps/parking.ts'
import type { Steps } from './steps/step-context.ts'
import { IN_BATCH, WithSteps } from './steps/with-steps.ts'
import { signalOf } from './stop-signal.ts'

/** What the contexts of one worker have in common. */
export interface ContextTerms {
  /** Bytes of an encoded progress report. */
  readonly maxPayload: number
  /** A handler has something to report. */
  reportSoon(): void
  /** A handler has logged something. */
  logSoon(): void
  /** @throws NotSupported: the store has no rates */
  assertRates(): void
  /** The parents of a job. @throws NotSupported, `Store…` */
  parents(id: string): Promise<ParentJob[]>
  /** @throws NotSupported: the store keeps no steps */
  steps(attempt: Attempt): StepCalls
}

/** The same, as the runner completes them. */
export interface RunnerTerms extends ContextTerms {
  /** The attempt is over: its job waits for what the park says. */
  park(attempt: Attempt, park: Park): void
}

export class AttemptContext extends WithSteps implements Context {
  readonly #attempt: Attempt
  readonly #terms: RunnerTerms
  readonly #transaction: StoreTransaction | undefined
  readonly #reads: ReplicaQuery | undefined
  #signal: AbortSignal | undefined
  #steps: Steps | undefined

  constructor(attempt: Attempt, terms: RunnerTerms, transaction?: StoreTransaction, reads?: ReplicaQuery) {
    super()
    this.#attempt = attempt
    this.#terms = terms
    this.#transaction = transaction
    this.#reads = reads
    attempt.context = this
  }

  // Made when first asked for: most handlers never look, and a controller costs more than the rest of an attempt.
  get signal(): AbortSignal {
    this.#signal ??= signalOf(this.#attempt)
    return this.#signal
  }

  progress(value: unknown): void {
    this.#attempt.unreported = encode(value, 'progress', this.#terms.maxPayload)
    this.#terms.reportSoon()
  }

  log(message: string, fields?: Readonly<Record<string, unknown>>): void {
    this.#attempt.log(message, fields)
    this.#terms.logSoon()
  }

  parents<Result>(): Promise<ParentJob<Result>[]> {
    // As with other results, the caller has said what they are.
    return this.#terms.parents(this.#attempt.claimed.id) as Promise<ParentJob<Result>[]>
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

  protected steps(): Steps {
    if (this.#attempt.batch !== undefined) throw new MillpondError('InvalidOption', IN_BATCH)
    this.#steps ??= new HandlerSteps(this.#hostOf(this.#attempt), this.#callsOf(this.#terms.steps(this.#attempt)))
    return this.#steps
  }

  #callsOf(calls: StepCalls): StepCalls {
    if (this.#transaction === undefined) return calls
    return {
      ...calls,
      begin() {
        const why = 'this worker has transaction: true, and its ctx.tx may hold what the step would wait for'
        throw new MillpondError('InvalidOption', `a step with a transaction of its own: ${why}`)
      },
    }
  }

  #hostOf(attempt: Attempt): StepsHost {
    return {
      claimed: attempt.claimed,
      get stopped() {
        return attempt.stopped
      },
      whenStopped: (listener) => attempt.whenStopped(listener),
      park: (park) => this.park(park),
    }
  }

  /** For a handler in another process. @throws NotSupported */
  get stepCalls(): StepCalls {
    return this.#terms.steps(this.#attempt)
  }

  /** The attempt is over. */
  park(park: Park): void {
    this.#terms.park(this.#attempt, park)
  }

  get tx(): TransactionQuery {
    return queryOf(this.#transaction, this.#attempt.stopped)
  }

  get replica(): ReplicaQuery {
    if (this.#reads !== undefined) return this.#reads
    throw new MillpondError('InvalidOption', 'ctx.replica needs a worker opened with replica')
  }
}

/** @param stopped why the transaction takes no further statement */
export function queryOf(
  transaction: StoreTransaction | undefined,
  stopped: MillpondError | undefined,
): TransactionQuery {
  if (transaction === undefined) {
    throw new MillpondError('InvalidOption', 'ctx.tx needs a worker opened with transaction: true')
  }
  if (stopped !== undefined) throw stopped
  return transaction.query
}
