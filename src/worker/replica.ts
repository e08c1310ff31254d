/**
 * Holds a worker's attempts back until a read replica shows what was committed before their jobs were pushed.
 *
 *   wait ─┬─ shown ──────────────► the handler reads the replica
 *         ├─ limit over ─────────► everyone who waits reads the primary, and the replica rests for as long as the limit
 *         └─ no answer, an error ► everyone who waits reads the primary, and the replica rests for two seconds
 *
 * While it rests nobody waits and nobody asks, so that a replica which lags far behind, or is gone, costs the worker no more than
 * half of its time. One question is under way at a time, about many attempts.
 */

import { Batcher } from '../batch/batcher.ts'
import type { ReplicaQuery, StoreReplica } from '../store.ts'
import { MillpondError, storeError } from '../values/errors/errors.ts'
import type { ClaimedJob } from '../values/jobs/records.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { within } from '../values/time/within.ts'
import type { Attempt } from './attempt.ts'

/** Milliseconds between two questions about the same attempt, and between any two. */
const AGAIN = 20
const APART = 5
const MAX_ATTEMPTS_PER_QUESTION = 500
/** Milliseconds until a question counts as unanswered, and for which the replica rests after that or an error. */
const PATIENCE = DEFAULTS.worker.replicaRest

export class Replica {
  readonly #store: StoreReplica
  readonly #limit: number
  readonly #trouble: (error: MillpondError) => void
  /** Per attempt: what its handler shall read; undefined: the replica does not show it yet. */
  readonly #questions: Batcher<ClaimedJob, ReplicaQuery | undefined>
  #lastAsked = Number.NEGATIVE_INFINITY
  #restsUntil = Number.NEGATIVE_INFINITY

  /** @param limit the longest that an attempt waits, in milliseconds */
  constructor(store: StoreReplica, limit: number, trouble: (error: MillpondError) => void) {
    this.#store = store
    this.#limit = limit
    this.#trouble = trouble
    const limits = { items: MAX_ATTEMPTS_PER_QUESTION, bytes: Number.POSITIVE_INFINITY }
    this.#questions = new Batcher((claims) => this.#ask(claims), limits)
  }

  /** Resolves to what its handler shall read. Never rejects. An attempt that is stopped meanwhile may be answered anyhow. */
  async wait(attempt: Attempt): Promise<ReplicaQuery> {
    const { claimed } = attempt
    const until = performance.now() + this.#limit
    while (attempt.stopped === undefined && !this.#rests) {
      const left = Math.ceil(until - performance.now())
      const query = await within(Math.max(1, left), this.#questions.add(claimed, 0))
      if (query !== undefined) return query
      if (performance.now() >= until) {
        this.#rest(this.#limit, unavailable(`did not show job ${claimed.id} within ${this.#limit} ms`))
      } else if (!this.#rests) await sleep(AGAIN)
    }
    return this.#store.primary
  }

  close(): Promise<void> {
    this.#restsUntil = Number.POSITIVE_INFINITY
    return this.#store.close()
  }

  get #rests(): boolean {
    return performance.now() < this.#restsUntil
  }

  async #ask(claims: readonly ClaimedJob[]): Promise<(ReplicaQuery | undefined)[]> {
    const early = Math.ceil(this.#lastAsked + APART - performance.now())
    if (early > 0) await sleep(early)
    this.#lastAsked = performance.now()
    const none = claims.map(() => undefined)
    // The question before has failed meanwhile.
    if (this.#rests) return none
    try {
      const answer = await within(PATIENCE, this.#store.shows(claims))
      if (answer !== undefined) return claims.map((_, at) => (answer.shown[at] ? answer.query : undefined))
      this.#store.drop()
      this.#rest(PATIENCE, unavailable(`did not answer within ${PATIENCE} ms`))
    } catch (error) {
      this.#rest(PATIENCE, storeError(error, 'asking the read replica'))
    }
    return none
  }

  /** Told once, however many find the same. */
  #rest(ms: number, reason: MillpondError): void {
    if (this.#rests) return
    this.#restsUntil = performance.now() + ms
    const message = `handlers read the primary for ${ms} ms: ${reason.message}`
    this.#trouble(new MillpondError(reason.code, message, { cause: reason }))
  }
}

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

const unavailable = (what: string): MillpondError => new MillpondError('StoreUnavailable', `the read replica ${what}`)
