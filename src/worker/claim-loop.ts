/**
 * Decides when a worker claims. One claim is under way at a time, and the loop is in one of these states:
 *
 *   ready ──free slots──► claiming ──answer──► ready
 *                          ├─bell─► rung ──answer──► ready
 *                          └─error─► failed ──after 50 ms, then twice as long each time, up to 5 s──► ready
 *
 *   any ──close──► closed, by way of closing while a claim is under way: what that still brings is given back
 *
 * A claim asks for jobs from a priority on: from 0, unless the worker has lanes. A short answer shows that no other job from that priority
 * on waits, unless a bell rang meanwhile. The worker makes no further claim from there on until a bell, a poll or `retryAfter`; until then
 * the loop is idle. If a slot for lower priorities becomes free, it claims from there at once.
 *
 * A busy worker also pauses after a short answer, before it claims from there on again. Else every push of a steady stream would ring for a
 * claim of its own, which costs the store more than the work itself.
 */

import { type MillpondError, storeError } from '../values/errors/errors.ts'
import type { Claimed } from '../values/jobs/records.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { LONGEST_TIMER } from '../values/time/duration.ts'
import type { Wanted } from './starter.ts'

/** Most jobs of one claim. After a claim that failed it is 1 and doubles with each answer: jobs may be too large to come together. */
const MAX_JOBS_PER_CLAIM = DEFAULTS.worker.maxClaim
/** A pause lasts as many times as long as the claim before it took, up to so many milliseconds. */
const PAUSE_FACTOR = DEFAULTS.worker.pauseFactor
const LONGEST_PAUSE = DEFAULTS.worker.maxPause
const FIRST_RETRY = DEFAULTS.worker.firstRetry
const LAST_RETRY = DEFAULTS.worker.maxRetry
/** In ms. An overdue job begins to wait at the next sweep. To claim again before it would only load the store. */
export const SHORTEST_RETRY_AFTER = DEFAULTS.worker.minRetryAfter

/** No priority: jobs of any may wait. */
const NONE = 10

type State = 'ready' | 'claiming' | 'rung' | 'failed' | 'closing' | 'closed'

/** What the loop needs of its worker. */
interface ClaimLoopHost {
  /** The jobs that the worker could take now. */
  wanted(): Wanted
  /** Whether the worker holds any job. */
  busy(): boolean
  /** Resolves to the claim, and to when it was sent, by `performance.now()`. */
  claim(wanted: Wanted): Promise<{ claimed: Claimed; sentAt: number }>
  arrived(claimed: Claimed, sentAt: number): void
  trouble(error: MillpondError): void
}

export class ClaimLoop {
  readonly #host: ClaimLoopHost
  #state: State = 'ready'
  /** No job of this priority or a higher one waits, as far as is known. */
  #emptyFrom = NONE
  /** `performance.now()` before which a busy worker does not claim from this priority on. */
  #pausedUntil = 0
  #pausedFrom = NONE
  #retryIn = FIRST_RETRY
  #most = MAX_JOBS_PER_CLAIM
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

  /** Whether a claim was short and none is due. */
  get idle(): boolean {
    return this.#state === 'ready' && this.#emptyFrom !== NONE
  }

  /** There may be work. Claims nothing by itself. */
  wake(): void {
    this.#emptyFrom = NONE
    if (this.#state === 'claiming') this.#state = 'rung'
  }

  /** Claims if the state and the slots allow it. */
  claim(): void {
    if (this.#state !== 'ready') return
    const { limit, minPriority } = this.#host.wanted()
    if (limit <= 0 || minPriority >= this.#emptyFrom) return
    if (minPriority >= this.#pausedFrom && this.#host.busy()) {
      const left = this.#pausedUntil - performance.now()
      if (left > 0) {
        this.#claimLater(Math.ceil(left))
        return
      }
    }
    const wanted = { limit: Math.min(limit, this.#most), minPriority }
    this.#state = 'claiming'
    this.#host.claim(wanted).then(
      ({ claimed, sentAt }) => this.#answered(wanted, claimed, sentAt),
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

  #answered({ limit, minPriority }: Wanted, claimed: Claimed, sentAt: number): void {
    this.#retryIn = FIRST_RETRY
    this.#most = Math.min(this.#most * 2, MAX_JOBS_PER_CLAIM)
    const isShort = claimed.jobs.length < limit
    if (isShort && this.#state !== 'rung') this.#emptyFrom = minPriority
    this.#state = this.#state === 'closing' ? 'closed' : 'ready'
    if (isShort) {
      const now = performance.now()
      this.#pausedUntil = now + Math.min(PAUSE_FACTOR * (now - sentAt), LONGEST_PAUSE)
      this.#pausedFrom = minPriority
      this.#wakeAfter(claimed.retryAfter)
    }
    this.#host.arrived(claimed, sentAt)
  }

  #failed(error: MillpondError): void {
    this.#most = 1
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
