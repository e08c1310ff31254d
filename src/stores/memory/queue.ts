/**
 * One queue of the memory store: its settings and its jobs by state, with every transition between them.
 *
 * A transition takes the job out of the container of its present state and puts it into that of the next; counts are the
 * sizes of the containers. `finish` is the only way into a final state, `#forget` the only way out of the store.
 */

import { DEFAULT_BACKOFF } from '../../backoff.ts'
import { LinkedList } from '../../linked-list.ts'
import type { BackoffPolicy, FinalState, JobState, QueueSettings } from '../../store.ts'
import { JobHeap } from './heap.ts'
import { Histograms } from './histograms.ts'
import type { Job } from './job.ts'
import { Leases } from './leases.ts'
import { byPlace, WaitingLine } from './waiting.ts'

export const DEFAULT_CAPACITY = 100_000
/** Most finished jobs of one state that a queue keeps. Time alone would let a fast queue fill the memory within the hour. */
export const MOST_FINISHED = 10_000

/** Also of claims in queues that do not exist. In milliseconds. */
export const DEFAULT_LEASE = 30_000

const HOUR = 3_600_000
const DAY = 24 * HOUR

export const byDue = (a: Job, b: Job): boolean => a.dueAt < b.dueAt || (a.dueAt === b.dueAt && byPlace(a, b))

export class MemoryQueue {
  readonly name: string
  capacity: number | null = DEFAULT_CAPACITY
  keepDone = HOUR
  keepDead = 7 * DAY
  paused = false
  attempts = 10
  timeout: number | null = null
  lease = DEFAULT_LEASE
  backoff: BackoffPolicy = DEFAULT_BACKOFF

  readonly waiting = new WaitingLine()
  readonly scheduled = new JobHeap(byDue)
  readonly running = new Leases()
  /** Each in the order of finishing. */
  readonly finished: Readonly<Record<FinalState, LinkedList<Job>>> = {
    done: new LinkedList<Job>(),
    dead: new LinkedList<Job>(),
    cancelled: new LinkedList<Job>(),
  }
  /** Live jobs by key. */
  readonly keys = new Map<string, Job>()
  readonly histograms = new Histograms()
  /** The store's jobs, from which one is taken once it is kept no longer. */
  readonly #jobs: Map<string, Job>

  constructor(name: string, jobs: Map<string, Job>) {
    this.name = name
    this.#jobs = jobs
  }

  configure(settings: QueueSettings): void {
    if (settings.capacity !== undefined) this.capacity = settings.capacity
    if (settings.keepDone !== undefined) this.keepDone = settings.keepDone
    if (settings.keepDead !== undefined) this.keepDead = settings.keepDead
    if (settings.paused !== undefined) this.paused = settings.paused
    if (settings.attempts !== undefined) this.attempts = settings.attempts
    if (settings.timeout !== undefined) this.timeout = settings.timeout
    if (settings.lease !== undefined) this.lease = settings.lease
    if (settings.backoff !== undefined) this.backoff = { ...settings.backoff }
  }

  get full(): boolean {
    return this.capacity !== null && this.waiting.size + this.scheduled.size >= this.capacity
  }

  /** Milliseconds until the next scheduled job is due; null: there is none. */
  nextDueIn(now: number): number | null {
    const next = this.scheduled.first
    return next === undefined ? null : Math.max(0, next.dueAt - now)
  }

  /** Nobody has set anything, and there is no job. */
  get idle(): boolean {
    const isDefault =
      this.capacity === DEFAULT_CAPACITY &&
      this.keepDone === HOUR &&
      this.keepDead === 7 * DAY &&
      !this.paused &&
      this.attempts === 10 &&
      this.timeout === null &&
      this.lease === DEFAULT_LEASE &&
      sameBackoff(this.backoff, DEFAULT_BACKOFF)
    return isDefault && Object.values(this.counts()).every((count) => count === 0)
  }

  counts(): Record<JobState, number> {
    return {
      scheduled: this.scheduled.size,
      waiting: this.waiting.size,
      running: this.running.size,
      done: this.finished.done.size,
      dead: this.finished.dead.size,
      cancelled: this.finished.cancelled.size,
    }
  }

  /** A job just pushed. */
  add(job: Job): void {
    if (job.key !== null) this.keys.set(job.key, job)
    if (job.state === 'scheduled') this.scheduled.add(job)
    else this.waiting.append(job)
  }

  run(job: Job, worker: string, now: number, lease: number): void {
    this.waiting.remove(job)
    job.state = 'running'
    job.fence++
    job.attempt++
    job.startedAt = now
    job.worker = worker
    job.leaseUntil = now + lease
    this.running.add(job, lease)
  }

  extend(job: Job, now: number, lease: number): void {
    if (now + lease <= job.leaseUntil) return
    this.running.remove(job)
    job.leaseUntil = now + lease
    this.running.add(job, lease)
  }

  /** From any state. */
  wait(job: Job): void {
    this.#leave(job)
    job.state = 'waiting'
    this.waiting.putBack(job)
  }

  /** A running job, to be tried again at `dueAt`. */
  schedule(job: Job, dueAt: number): void {
    this.#leave(job)
    job.state = 'scheduled'
    job.dueAt = dueAt
    this.scheduled.add(job)
  }

  /** From any live state. */
  finish(job: Job, state: FinalState, now: number): void {
    this.#leave(job)
    if (job.key !== null) this.keys.delete(job.key)
    job.state = state
    job.finishedAt = now
    if (this.#keep(state) === 0) {
      this.#jobs.delete(job.id)
      return
    }
    const list = this.finished[state]
    list.append(job)
    if (list.size > MOST_FINISHED && list.first !== null) this.#forget(list.first)
  }

  /** Brings a dead or cancelled job back; false where a live one has taken its key. */
  requeue(job: Job, now: number): boolean {
    if (job.key !== null) {
      if (this.keys.has(job.key)) return false
      this.keys.set(job.key, job)
    }
    this.wait(job)
    job.renew(now)
    return true
  }

  /** Removes up to `limit` finished jobs that were kept long enough; returns how many. */
  expire(now: number, limit: number): number {
    let expired = 0
    for (const state of ['done', 'dead', 'cancelled'] as const) {
      const keep = this.#keep(state)
      const list = this.finished[state]
      while (expired < limit && list.first !== null && list.first.finishedAt + keep <= now) {
        this.#forget(list.first)
        expired++
      }
    }
    return expired
  }

  #keep(state: FinalState): number {
    return state === 'done' ? this.keepDone : this.keepDead
  }

  #leave(job: Job): void {
    switch (job.state) {
      case 'running':
        this.running.remove(job)
        break
      case 'waiting':
        this.waiting.remove(job)
        break
      case 'scheduled':
        this.scheduled.remove(job)
        break
      default:
        this.finished[job.state].remove(job)
    }
  }

  #forget(job: Job): void {
    this.#leave(job)
    this.#jobs.delete(job.id)
  }
}

const sameBackoff = (a: BackoffPolicy, b: BackoffPolicy): boolean =>
  a.base === b.base && a.factor === b.factor && a.max === b.max && a.jitter === b.jitter
