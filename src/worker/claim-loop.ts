/**
 * Decides when a worker claims. One claim is under way at a time, and the loop is in one of these states:
 *
 *   ready ──free slots──► claiming ──all that was asked for──► ready
 *                          │    └────fewer──► idle ──bell, poll, retryAfter──► ready
 *                          ├─bell─► rung ──answer, whatever it brings──► ready
 *                          └─error─► failed ──after 50 ms, then twice as long each time, up to 5 s──► ready
 *
 *   any ──close──► closed, by way of closing while a claim is under way: what that still brings is given back
 *
 * A busy worker whose claim brought fewer than it asked for also pauses before the next one. Else every push of a steady
 * stream would ring for a claim of its own, which costs the store more than the work itself.
 */

import type { Claimed } from '../store.ts'
import { LONGEST_TIMER } from '../values/duration.ts'
import { type MillpondError, storeError } from '../values/errors.ts'

/** Most jobs asked for in one claim. */
const MAX_JOBS_PER_CLAIM = 500
/** A pause lasts as many times as long as the claim before it took, up to so many milliseconds. */
const PAUSE_FACTOR = 2
const LONGEST_PAUSE = 10
const FIRST_RETRY = 50
const LAST_RETRY = 5000
/** A job that is overdue is waiting as soon as a sweep has seen it: until then, asking again sooner would only load the store. In ms. */
export const SHORTEST_RETRY_AFTER = 10

type State = 'ready' | 'claiming' | 'rung' | 'idle' | 'failed' | 'closing' | 'closed'

/** What the loop needs of its worker. */
export interface ClaimLoopHost {
  /** How many jobs the worker could take now. */
  wanted(): number
  /** Whether the worker holds any job. */
  busy(): boolean
  /** Resolves to the claim, and to when it was sent, by `performance.now()`. */
  claim(limit: number): Promise<{ claimed: Claimed; sentAt: number }>
  arrived(claimed: Claimed, sentAt: number): void
  trouble(error: MillpondError): void
}

export class ClaimLoop {
  readonly #host: ClaimLoopHost
  #state: State = 'ready'
  /** `performance.now()` before which a busy worker does not claim. */
  #pausedUntil = 0
  #retryIn = FIRST_RETRY
  #pause: NodeJS.Timeout | undefined
  #retry: NodeJS.Timeout | undefined
  #retryAfter: NodeJS.Timeout | undefined

  constructor(host: ClaimLoopHost) {
    this.#host = host
  }

  get closed(): boolean {
    return this.#state === 'closing' || this.#state === 'closed'
  }

  /** Whether a claim has not been answered yet. */
  get underWay(): boolean {
    return this.#state === 'claiming' || this.#state === 'rung' || this.#state === 'closing'
  }

  get idle(): boolean {
    return this.#state === 'idle'
  }

  /** There may be work. Claims nothing by itself. */
  wake(): void {
    if (this.#state === 'idle') this.#state = 'ready'
    else if (this.#state === 'claiming') this.#state = 'rung'
  }

  /** Claims if the state and the slots allow it. */
  claim(): void {
    if (this.#state !== 'ready') return
    const wanted = this.#host.wanted()
    if (wanted <= 0) return
    const now = performance.now()
    if (now < this.#pausedUntil && this.#host.busy()) {
      this.#claimLater(Math.ceil(this.#pausedUntil - now))
      return
    }
    const limit = Math.min(wanted, MAX_JOBS_PER_CLAIM)
    this.#state = 'claiming'
    this.#host.claim(limit).then(
      ({ claimed, sentAt }) => this.#answered(limit, claimed, sentAt),
      (error: unknown) => this.#failed(storeError(error, 'claim')),
    )
  }

  /** No claim is made from now on. */
  close(): void {
    this.#state = this.underWay ? 'closing' : 'closed'
    clearTimeout(this.#pause)
    clearTimeout(this.#retry)
    clearTimeout(this.#retryAfter)
  }

  #answered(limit: number, claimed: Claimed, sentAt: number): void {
    this.#retryIn = FIRST_RETRY
    const isShort = claimed.jobs.length < limit
    if (this.#state === 'closing') this.#state = 'closed'
    else this.#state = isShort && this.#state !== 'rung' ? 'idle' : 'ready'
    if (isShort) {
      const now = performance.now()
      this.#pausedUntil = now + Math.min(PAUSE_FACTOR * (now - sentAt), LONGEST_PAUSE)
      this.#wakeAfter(claimed.retryAfter)
    }
    this.#host.arrived(claimed, sentAt)
  }

  #failed(error: MillpondError): void {
    if (this.#state === 'closing') {
      this.#state = 'closed'
    } else {
      this.#state = 'failed'
      this.#retry = setTimeout(() => {
        this.#state = 'ready'
        this.claim()
      }, this.#retryIn).unref()
      this.#retryIn = Math.min(this.#retryIn * 2, LAST_RETRY)
    }
    this.#host.trouble(error)
  }

  #claimLater(ms: number): void {
    this.#pause ??= setTimeout(() => {
      this.#pause = undefined
      this.claim()
    }, ms).unref()
  }

  #wakeAfter(ms: number | null): void {
    clearTimeout(this.#retryAfter)
    if (ms === null || this.closed) return
    this.#retryAfter = setTimeout(
      () => {
        this.wake()
        this.claim()
      },
      Math.min(Math.max(Math.ceil(ms), SHORTEST_RETRY_AFTER), LONGEST_TIMER),
    ).unref()
  }
}
