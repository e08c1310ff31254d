/**
 * One queue of the memory store: its settings and its jobs by state, with every transition between them.
 *
 * A transition takes the job out of the container of its present state and puts it into that of the next; counts are the
 * sizes of the containers. `finish` is the way into a final state, `#forget` the only way out of the store.
 */

import { LinkedList } from '../../values/collections/linked-list.ts'
import type { FinalState, JobState } from '../../values/jobs/records.ts'
import type { Totals } from '../../values/operations/requests.ts'
import { DEFAULTS as CONTRACT } from '../../values/settings/contract-defaults.ts'
import type { HeldBack, LimitSettings } from '../../values/settings/limits.ts'
import type { GivenSettings, QueueSettings, SettingName, SettingsChange } from '../../values/settings/settings.ts'
import { DEFAULTS as COMMON_DEFAULTS } from '../defaults.ts'
import { NOTHING_GIVEN, settle } from '../given-settings.ts'
import { Groups } from './groups.ts'
import { Heap } from './heap.ts'
import { Histograms } from './histograms.ts'
import type { IdIndex } from './id-index.ts'
import { isFinal, type Job } from './job.ts'
import { hasLiveChild, unlink } from './links.ts'
import { OnceKeys } from './once.ts'
import { Throttle } from './throttle.ts'
import { byPlace, WaitingJobs } from './waiting.ts'

/** Most finished jobs of one state that a queue keeps. Time alone would let a fast queue fill the memory within the hour. */
const MAX_FINISHED = CONTRACT.memory.finished

/** Ms by which a claim is in the future at least if the clock was set back since. */
const SET_BACK = 1000
const LOOK_AT_HELD = CONTRACT.graph.look
const MAX_HELD_LOOKS = 100

type Settings = Required<Omit<QueueSettings, 'queue' | 'grouped'>> & { grouped: boolean }

const COMMON_AND_CAPACITY = { ...COMMON_DEFAULTS, capacity: CONTRACT.memory.capacity }

/** The default settings. Claims in queues that do not exist use them, too. */
export const DEFAULTS: Readonly<Settings> = { ...COMMON_AND_CAPACITY, grouped: false }

export const byDue = (a: Job, b: Job): boolean => a.dueAt < b.dueAt || (a.dueAt === b.dueAt && byPlace(a, b))
export const byLease = (a: Job, b: Job): boolean =>
  a.leaseUntil < b.leaseUntil || (a.leaseUntil === b.leaseUntil && byPlace(a, b))

export class MemoryQueue {
  readonly name: string
  readonly settings = { ...DEFAULTS }
  given: GivenSettings = NOTHING_GIVEN
  /** When a worker of it was last heard of; null: never. */
  heardAt: number | null = null
  readonly totals: Totals = { pushed: 0, done: 0, failed: 0, dead: 0, cancelled: 0, lost: 0, released: 0 }
  /** By place. */
  readonly blocked = new LinkedList<Job>()
  waiting: WaitingJobs | Groups = new WaitingJobs()
  readonly scheduled = new Heap<Job>(byDue)
  /** In the order of claiming. */
  readonly running = new LinkedList<Job>()
  /** Each in the order of finishing. */
  readonly finished: Readonly<Record<FinalState, LinkedList<Job>>> = {
    done: new LinkedList<Job>(),
    dead: new LinkedList<Job>(),
    cancelled: new LinkedList<Job>(),
  }
  /** Done jobs that were kept long enough, but for children that may ask for their results; and when each is looked at again. */
  readonly held = new Map<Job, number>()
  /** Live jobs by key. */
  readonly keys = new Map<string, Job>()
  readonly once = new OnceKeys()
  readonly histograms = new Histograms()
  /** Of the queue's own rate and pause. */
  readonly #throttle = new Throttle()
  /** How many jobs have reached a final state here. */
  #endings = 0
  /** The store's jobs, from which one is taken once it is kept no longer. */
  readonly #jobs: IdIndex<Job>

  constructor(name: string, jobs: IdIndex<Job>) {
    this.name = name
    this.#jobs = jobs
  }

  /** @returns what an operator's value keeps out of effect */
  configure(change: SettingsChange): SettingName[] {
    const { apply, given, overridden } = settle(this.given, structuredClone(change), COMMON_AND_CAPACITY)
    this.given = given
    Object.assign(this.settings, apply)
    const { grouped, groupRunning, groupRate } = this.settings
    if (grouped || groupRunning !== null || groupRate !== null) this.group().touchAll()
    return overridden
  }

  /** Makes it a grouped queue, if it is none. */
  group(): Groups {
    if (this.waiting instanceof Groups) return this.waiting
    const groups = new Groups(this.settings)
    for (const job of [...this.waiting.after(null)]) {
      this.waiting.remove(job)
      groups.putBack(job)
    }
    for (const job of this.running) groups.adopt(job)
    this.settings.grouped = true
    this.waiting = groups
    return groups
  }

  /** The end of a running job may let another one start. */
  get hasLimits(): boolean {
    return this.settings.running !== null || this.waiting instanceof Groups
  }

  get isFull(): boolean {
    const { capacity } = this.settings
    return capacity !== null && this.size >= capacity
  }

  /** How many jobs the capacity counts. */
  get size(): number {
    return this.blocked.size + this.waiting.size + this.scheduled.size
  }

  /** How many more jobs the capacity allows. */
  get room(): number {
    return (this.settings.capacity ?? Number.POSITIVE_INFINITY) - this.size
  }

  /** Milliseconds until the next scheduled job is due; null: there is none. */
  nextDueIn(now: number): number | null {
    const next = this.scheduled.first
    return next === undefined || next.followDue !== null ? null : Math.max(0, next.dueAt - now)
  }

  /** Milliseconds until the queue's rate and pause allow a start of this cost; null: as many jobs run as may. */
  startableIn(now: number, cost: number): number | null {
    const { running, rate } = this.settings
    if (running !== null && this.running.size >= running) return null
    return this.#throttle.wait(rate, now, cost)
  }

  /** To be called at the beginning of a claim. */
  beginClaim(now: number): void {
    this.#throttle.bound(this.settings.rate, now)
  }

  /** For so many milliseconds no job of its group is claimed, or none of the queue if it is not grouped or the job has no group. */
  pause(job: Job, now: number, length: number): void {
    if (this.waiting instanceof Groups && job.group !== null) this.waiting.pause(job, now, length)
    else this.#throttle.pause(now, length)
  }

  /** A running job did not start after all. */
  giveBackStart(job: Job, now: number): void {
    this.#throttle.giveBack(this.settings.rate, now, job.startedAt, job.cost)
    if (this.waiting instanceof Groups) this.waiting.giveBack(job, now)
  }

  get limits(): LimitSettings | null {
    const { running, rate, grouped, groupRunning, groupRate } = this.settings
    if (running === null && rate === null && !grouped) return null
    return { running, rate, grouped, groupRunning, groupRate }
  }

  heldBack(now: number): HeldBack {
    const groups = this.waiting instanceof Groups ? this.waiting.heldBack(now) : { groupsAtLimit: 0, groupsHeld: 0 }
    return { nextStart: this.startableIn(now, 1), ...groups }
  }

  counts(): Record<JobState, number> {
    return {
      blocked: this.blocked.size,
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
    if (job.key !== null) this.#holdKey(job, job.key)
    if (job.state === 'blocked') this.blocked.append(job)
    else if (job.state === 'scheduled') this.scheduled.add(job)
    else this.waiting.append(job)
  }

  /** A waiting job is claimed. @param perGroup most jobs of its group in one turn */
  run(job: Job, worker: string, now: number, leaseUntil: number, perGroup: number): void {
    if (this.waiting instanceof Groups) this.waiting.start(job, now, perGroup)
    else this.waiting.remove(job)
    this.#throttle.start(this.settings.rate, now, job.cost)
    job.state = 'running'
    job.parked = null
    job.fence++
    job.attempt++
    job.startedAt = now
    job.worker = worker
    job.leaseUntil = leaseUntil
    this.running.append(job)
  }

  /**
   * Up to `limit` running jobs whose lease ended at or before `now`, the one that ended first at the head. Those that a clock claimed which
   * was set back since count as claimed now.
   */
  endedLeases(now: number, limit: number): Job[] {
    const ended: Job[] = []
    for (let job = this.running.first; job !== null; job = job.next) {
      if (job.startedAt > now + SET_BACK) {
        job.leaseUntil -= job.startedAt - now
        job.startedAt = now
      }
      if (job.leaseUntil <= now) ended.push(job)
    }
    return ended.sort((a, b) => (byLease(a, b) ? -1 : 1)).slice(0, limit)
  }

  /** From any state. */
  wait(job: Job): void {
    this.#leave(job)
    job.state = 'waiting'
    this.waiting.putBack(job)
  }

  /** A job that was running, or has just come back, waits for others. */
  block(job: Job): void {
    this.#leave(job)
    job.state = 'blocked'
    let before = this.blocked.last
    while (before !== null && before.place > job.place) before = before.prev
    this.blocked.insertAfter(before, job)
  }

  /** A running job is to be tried again at its `dueAt`, or one that was blocked is due later. */
  schedule(job: Job): void {
    this.#leave(job)
    job.state = 'scheduled'
    this.scheduled.add(job)
  }

  /** From any live state. */
  finish(job: Job, state: FinalState, now: number): void {
    this.#leave(job)
    if (job.key !== null) this.once.end(job, this.keys, this.scheduled, now, state !== 'cancelled')
    job.state = state
    job.parked = null
    job.finishedAt = now
    job.ending = ++this.#endings
    this.totals[state]++
    if (this.#keep(state) === 0) {
      this.#jobs.remove(job)
      unlink(job)
      return
    }
    this.#keepFinished(job, this.finished[state])
  }

  /** A job that is as it was elsewhere. */
  restore(job: Job, now: number): void {
    if (isFinal(job.state)) {
      const { id, key, unique, pushedAt, finishedAt, state } = job
      if (key !== null && unique !== null && state !== 'cancelled' && !this.keys.has(key)) {
        this.once.remember(key, id, unique, pushedAt, finishedAt, now)
      }
      job.ending = ++this.#endings
      this.#keepFinished(job, this.finished[job.state])
      return
    }
    if (job.key !== null) this.#holdKey(job, job.key)
    if (job.state === 'blocked') this.blocked.append(job)
    else if (job.state === 'scheduled') this.scheduled.add(job)
    else this.waiting.putBack(job)
  }

  /** A scheduled or waiting job is changed, and goes where it belongs then. */
  move(job: Job, becomes: 'scheduled' | 'waiting', change: () => void): void {
    this.#leave(job)
    change()
    job.state = becomes
    if (becomes === 'scheduled') this.scheduled.add(job)
    else this.waiting.putBack(job)
  }

  /** From any state, as if it had never been. */
  remove(job: Job, now: number): void {
    if (job.key !== null) this.once.forget(job.key, job.id)
    this.#forget(job)
    if (!isFinal(job.state)) this.once.end(job, this.keys, this.scheduled, now, false)
  }

  /** Brings a dead or cancelled job back with all its attempts; false where a live one has taken its key. */
  requeue(job: Job, now: number): boolean {
    if (job.key !== null) {
      if (this.keys.has(job.key)) return false
      this.#holdKey(job, job.key)
    }
    this.wait(job)
    job.worker = null
    job.attempt = 0
    job.dueAt = now
    return true
  }

  /** Removes up to `limit` finished jobs that were kept long enough; returns how many. */
  expire(now: number, limit: number): number {
    let expired = 0
    for (const state of ['done', 'dead', 'cancelled'] as const) {
      const keep = this.#keep(state)
      const list = this.finished[state]
      while (expired < limit && list.first !== null && list.first.finishedAt + keep <= now) {
        this.#expire(list.first, now)
        expired++
      }
    }
    this.#lookAtHeld(now)
    return expired
  }

  /** A done job whose child may ask for its result is known on, but in no list. */
  #expire(job: Job, now: number): void {
    if (job.state !== 'done' || !hasLiveChild(job)) this.#forget(job)
    else {
      this.#leave(job)
      this.held.set(job, now + LOOK_AT_HELD)
    }
  }

  /** Those that were held longest come first. */
  #lookAtHeld(now: number): void {
    let looks = 0
    for (const [job, at] of this.held) {
      // A later time is that of a clock that went back.
      if (looks++ === MAX_HELD_LOOKS || (at > now && at <= now + LOOK_AT_HELD)) break
      this.held.delete(job)
      if (hasLiveChild(job)) this.held.set(job, now + LOOK_AT_HELD)
      else this.#forget(job)
    }
  }

  #holdKey(job: Job, key: string): void {
    if (job.followDue === null) {
      this.keys.set(key, job)
      this.once.take(key)
    } else this.once.follow(key, job)
  }

  #keep(state: FinalState): number {
    return state === 'done' ? this.settings.keepDone : this.settings.keepDead
  }

  /** Nearly always the last one: only a job that is restored may have ended before others. */
  #keepFinished(job: Job, list: LinkedList<Job>): void {
    let before = list.last
    while (before !== null && before.finishedAt > job.finishedAt) before = before.prev
    list.insertAfter(before, job)
    if (list.size > MAX_FINISHED && list.first !== null) this.#expire(list.first, job.finishedAt)
  }

  #leave(job: Job): void {
    if (job.state === 'waiting') this.waiting.remove(job)
    else if (job.state === 'scheduled') this.scheduled.remove(job)
    else job.list?.remove(job)
    if (job.state === 'running' && this.waiting instanceof Groups) this.waiting.end(job)
  }

  #forget(job: Job): void {
    this.#leave(job)
    this.held.delete(job)
    this.#jobs.remove(job)
    unlink(job)
  }
}
