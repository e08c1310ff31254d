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

import { atEndOfTurn } from '../batch/batcher.ts'
import type { ReplicaQuery, StoreReplica } from '../store.ts'
import { MillpondError, storeError } from '../values/errors.ts'
import type { Attempt } from './attempt.ts'

/** Milliseconds between two questions about the same attempt, and between any two. */
const AGAIN = 20
const APART = 5
const MAX_ATTEMPTS_PER_QUESTION = 500
/** Milliseconds until a question counts as unanswered, and for which the replica rests after that or an error. */
const PATIENCE = 2000

interface Waiting {
  attempt: Attempt
  /** `performance.now()` at which its limit is over, and from which it is asked about again. */
  until: number
  askFrom: number
  go: (query: ReplicaQuery) => void
}

export class Replica {
  readonly #store: StoreReplica
  readonly #limit: number
  readonly #trouble: (error: MillpondError) => void
  /** In the order of their coming, so the first one's limit is over first. */
  #waiting: Waiting[] = []
  #asking = false
  #lastAsked = 0
  /** When the next question is planned for; Infinity: none is. */
  #planned = Number.POSITIVE_INFINITY
  #questionTimer: NodeJS.Timeout | undefined
  #limitTimer: NodeJS.Timeout | undefined
  #restsUntil = 0
  #closed = false

  /** @param limit the longest that an attempt waits, in milliseconds */
  constructor(store: StoreReplica, limit: number, trouble: (error: MillpondError) => void) {
    this.#store = store
    this.#limit = limit
    this.#trouble = trouble
  }

  /** Resolves to what its handler shall read. Never rejects. An attempt that is over meanwhile may be answered anyhow. */
  wait(attempt: Attempt): Promise<ReplicaQuery> {
    const now = performance.now()
    if (now < this.#restsUntil) return Promise.resolve(this.#store.primary)
    return new Promise((go) => {
      this.#waiting.push({ attempt, until: now + this.#limit, askFrom: now, go })
      this.#plan(this.#lastAsked + APART)
      this.#watchLimit()
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#usePrimary()
    clearTimeout(this.#questionTimer)
    clearTimeout(this.#limitTimer)
    await this.#store.close()
  }

  #plan(at: number): void {
    if (this.#asking || at >= this.#planned) return
    this.#planned = at
    clearTimeout(this.#questionTimer)
    const left = Math.ceil(at - performance.now())
    if (left > 0) this.#questionTimer = setTimeout(() => this.#ask(), left).unref()
    else {
      // Handlers that start in one turn share a question. It cannot be planned any sooner.
      this.#planned = Number.NEGATIVE_INFINITY
      atEndOfTurn(() => this.#ask())
    }
  }

  #ask(): void {
    this.#planned = Number.POSITIVE_INFINITY
    const now = performance.now()
    this.#release((each) => each.attempt.over !== undefined, this.#store.primary)
    const asked = this.#waiting.filter(({ askFrom }) => askFrom <= now).slice(0, MAX_ATTEMPTS_PER_QUESTION)
    if (asked.length === 0) {
      this.#next()
      return
    }
    this.#asking = true
    this.#lastAsked = now
    const answered = () => {
      this.#asking = false
      clearTimeout(patience)
    }
    // Once it is given up, whatever becomes of the question is no longer heard.
    let givenUp = false
    const patience = setTimeout(() => {
      givenUp = true
      answered()
      this.#store.drop()
      this.#rest(
        PATIENCE,
        new MillpondError('StoreUnavailable', `the read replica did not answer within ${PATIENCE} ms`),
      )
    }, PATIENCE).unref()
    this.#store.shows(asked.map(({ attempt }) => attempt.claimed)).then(
      ({ shown, query }) => {
        if (givenUp) return
        answered()
        const there = new Set(asked.filter((_, index) => shown[index] === true))
        for (const each of asked) each.askFrom = now + AGAIN
        this.#release((each) => there.has(each), query)
        this.#next()
      },
      (error: unknown) => {
        if (givenUp) return
        answered()
        this.#rest(PATIENCE, storeError(error, 'asking the read replica'))
      },
    )
  }

  #next(): void {
    const soonest = this.#waiting.reduce((least, { askFrom }) => Math.min(least, askFrom), Number.POSITIVE_INFINITY)
    if (this.#waiting.length > 0) this.#plan(Math.max(soonest, this.#lastAsked + APART))
  }

  #watchLimit(): void {
    const [first] = this.#waiting
    if (this.#limitTimer !== undefined || first === undefined) return
    // A millisecond more, since timers may be early by a part of one.
    const left = Math.ceil(Math.max(1, first.until - performance.now() + 1))
    this.#limitTimer = setTimeout(() => {
      this.#limitTimer = undefined
      const [oldest] = this.#waiting
      if (oldest === undefined) return
      if (performance.now() < oldest.until) this.#watchLimit()
      else {
        const { id } = oldest.attempt.claimed
        const message = `the read replica did not show job ${id} within ${this.#limit} ms`
        this.#rest(this.#limit, new MillpondError('StoreUnavailable', message, { id }))
      }
    }, left).unref()
  }

  #rest(ms: number, reason: MillpondError): void {
    this.#restsUntil = performance.now() + ms
    this.#usePrimary()
    if (this.#closed) return
    const message = `handlers read the primary for ${ms} ms: ${reason.message}`
    this.#trouble(new MillpondError(reason.code, message, { cause: reason }))
  }

  #usePrimary(): void {
    this.#release(() => true, this.#store.primary)
  }

  #release(which: (each: Waiting) => boolean, query: ReplicaQuery): void {
    const free = this.#waiting.filter(which)
    if (free.length === 0) return
    this.#waiting = this.#waiting.filter((each) => !which(each))
    for (const { go } of free) go(query)
  }
}
