/**
 * A claimed job while this worker holds it, that is, while its lease is extended.
 *
 *   buffered ──slot free──► awaitingReplica ──replica ready──► running ──handler answered, or a transaction decides──► ending
 *      │                         └──────────────────────────┴─ lease lost, cancelled, timed out, worker closed ──► stopped
 *      ├─ given back ──► ending
 *      └─ lease lost, cancelled ──► stopped
 *
 *   ending ──worker closed while a transaction decides──► stopped
 *
 * Without a replica no attempt is `awaitingReplica`. The handler of a stopped attempt may go on, but its answer no longer counts. The
 * store is still told of an attempt that timed out or was given back. The worker lets go of an attempt once the store has answered, or the
 * claim is lost.
 */

import type { Linked, LinkedList } from '../values/collections/linked-list.ts'
import type { MillpondError } from '../values/errors/errors.ts'
import { UnsentLog } from '../values/jobs/job-log.ts'
import type { ClaimedJob, Encoded } from '../values/jobs/records.ts'
import type { Context } from './context.ts'
import type { Deadline } from './deadline.ts'

type AttemptState = 'buffered' | 'awaitingReplica' | 'running' | 'ending' | 'stopped'

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
  /** The attempt has left its slot. */
  left(attempt: Attempt): void
}

export class Attempt implements Linked<Attempt> {
  /** Its place among the buffered attempts, then among those with a slot; null: it is neither. */
  prev: Attempt | null = null
  next: Attempt | null = null
  list: LinkedList<Attempt> | null = null
  readonly claimed: ClaimedJob
  readonly #arrival: Arrival
  #state: AttemptState = 'buffered'
  /** Why it is stopped. */
  #reason: MillpondError | undefined
  #stopListeners: ((reason: MillpondError) => void)[] | undefined
  /** `performance.now()` until which its lease holds for certain; past it, the store decides. */
  heldUntil: number
  /**
   * `performance.now()` at which it got its slot, and at which it left it. NaN before: a field that holds a fraction later costs less if it
   * never held an integer.
   */
  startedAt = Number.NaN
  endedAt = Number.NaN
  /** Its handler's latest progress report that the store was not told of. */
  unreported: Encoded | null = null
  /** What its handler has logged and the store was not told of; undefined: it has logged nothing. */
  unsentLog: UnsentLog | undefined
  /** How often reports were left out. */
  leftOut = 0
  /** The only unsent line is the mark of reports that the store refused. */
  #isMarked = false
  /** Stops it when its handler has run for too long. */
  deadline: Deadline | undefined
  /** What its handler was given. */
  context: Context | undefined
  /** With a batch handler, once it runs. */
  batch: AttemptBatch | undefined

  constructor(claimed: ClaimedJob, arrival: Arrival) {
    this.claimed = claimed
    this.#arrival = arrival
    this.heldUntil = arrival.heldUntil
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
    return this.endedAt - this.startedAt
  }

  /** The time as the store's clock shows it, in milliseconds since 1970. */
  get storeTime(): number {
    const { now, at } = this.#arrival
    return Math.round(now + performance.now() - at)
  }

  log(message: string, fields: unknown): void {
    this.unsentLog ??= new UnsentLog()
    this.unsentLog.add(this.claimed.attempt, this.storeTime, message, fields)
    this.#isMarked = false
  }

  /**
   * Drops unsent progress and lines, which the store refuses, and logs one line as their mark. If it refuses the mark as well, that goes.
   * @returns false: there was nothing to drop
   */
  leaveOutReports({ code }: MillpondError): boolean {
    const wasMarked = this.#isMarked && this.unreported === null
    if (this.unreported === null && (this.unsentLog?.isEmpty ?? true)) return false
    this.leftOut++
    this.unreported = null
    this.unsentLog?.clear()
    if (wasMarked) return true
    this.log(`the store refused what was reported or logged here; it was left out (${code})`, undefined)
    this.#isMarked = true
    return true
  }

  get state(): AttemptState {
    return this.#state
  }

  /** Neither ending nor stopped. */
  get isOpen(): boolean {
    return this.#state !== 'ending' && this.#state !== 'stopped'
  }

  /** Why nothing that the handler still does counts; undefined: it counts. */
  get stopped(): MillpondError | undefined {
    return this.#reason
  }

  start(now: number): void {
    this.#state = 'running'
    this.startedAt = now
  }

  /** It has a slot, but its handler is not called yet. @returns false: it was stopped meanwhile */
  async awaitReplica(ready: Promise<unknown>): Promise<boolean> {
    this.#state = 'awaitingReplica'
    await ready
    if (this.#state === 'awaitingReplica') this.#state = 'running'
    return this.#state === 'running'
  }

  /** How it ends is decided, or a transaction decides it now. */
  end(): void {
    if (this.#state !== 'stopped') this.#state = 'ending'
  }

  stop(reason: MillpondError): void {
    if (this.#reason !== undefined) return
    this.#state = 'stopped'
    this.#reason = reason
    for (const listener of this.#stopListeners ?? []) listener(reason)
  }

  /** Called at once if it is stopped. */
  whenStopped(listener: (reason: MillpondError) => void): void {
    if (this.#reason !== undefined) listener(this.#reason)
    else if (this.#stopListeners === undefined) this.#stopListeners = [listener]
    else this.#stopListeners.push(listener)
  }
}
