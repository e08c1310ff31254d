/**
 * What one transaction knows and changes of each queue. Changes of counts are summed here and written once per queue before
 * the commit, since an update of the queue's row per job would cost as much as the job itself.
 */
import type { FinalState, JobState } from '../../store.ts'
import type { LimitSettings } from '../../values/limits.ts'
import { fullAfter, startableAt } from '../../values/rate.ts'
import type { IdleQueues } from '../idle.ts'
import type { Statements } from './connection/statements.ts'
import { integer, integerOrNull, type Row, text } from './connection/values.ts'

/** What an operation works on: one connection, in one transaction. */
export interface Context {
  statements: Statements
  queues: Queues
  idle: IdleQueues
  /** Fences are given out above it. */
  fenceFloor: number
  /** The time to act on. */
  now: number
}

/** Of a queue that does not exist. */
export const DEFAULT_LEASE = 30_000

const isHeld = (state: JobState | null): boolean => state === 'scheduled' || state === 'waiting'

const settingsFrom = (row: Row) => ({
  capacity: integerOrNull(row.capacity),
  keepDone: integer(row.keep_done),
  keepDead: integer(row.keep_dead),
  paused: integer(row.paused) !== 0,
  attempts: integer(row.attempts),
  timeout: integerOrNull(row.timeout),
  lease: integer(row.lease),
})

interface Limits {
  limits: LimitSettings
  /** How many jobs run, if there are limits. */
  running: number
  /** Of the rate, in microseconds. */
  full: number
  pausedUntil: number
}

const NO_LIMITS: Readonly<Limits> = {
  limits: { running: null, rate: null, grouped: false, groupRunning: null, groupRate: null },
  ...{ running: 0, full: 0, pausedUntil: 0 },
}

const limitsFrom = (value: unknown): Readonly<Limits> => (value === null ? NO_LIMITS : JSON.parse(text(value)))

export class QueueChanges {
  readonly name: string
  readonly settings: ReturnType<typeof settingsFrom>
  /** How many more jobs the capacity allows, counting those of this transaction. */
  room: number
  readonly limits: Limits['limits']
  readonly #pausedUntil: number
  /** How many jobs run, counting those of this transaction; only of a queue with limits. */
  running: number
  /** Of the queue's rate, in microseconds. */
  full: number
  /** To be rung after the commit, beside those for `finished` and `cancelled`. */
  readonly bells = new Set<'work' | 'room'>()
  /** By how much the columns of these names change. */
  readonly counts = {
    ...{ scheduled: 0, waiting: 0, running: 0, done: 0, dead: 0, cancelled: 0 },
    ...{ ready_total: 0, finished_total: 0, cancelled_total: 0 },
  }
  /** The ids of jobs that reached a final state, and of those that were cancelled while running, where they are known. */
  readonly finished: string[] = []
  readonly cancelled: string[] = []

  constructor(name: string, row: Row) {
    this.name = name
    this.settings = settingsFrom(row)
    const { capacity } = this.settings
    this.room = capacity === null ? Number.POSITIVE_INFINITY : capacity - integer(row.scheduled) - integer(row.waiting)
    const { limits, running, full, pausedUntil } = limitsFrom(row.limits)
    this.limits = limits
    this.running = running
    this.full = full
    this.#pausedUntil = pausedUntil
  }

  keeps(state: FinalState): boolean {
    return (state === 'done' ? this.settings.keepDone : this.settings.keepDead) > 0
  }

  /** The end of a running job may let another one start. */
  get hasLimits(): boolean {
    return this.limits.running !== null || this.limits.grouped
  }

  /** Milliseconds until the queue's limits and pause allow a start of this cost; null: as many jobs run as may. */
  startableIn(now: number, cost: number): number | null {
    const { running, rate } = this.limits
    if (running !== null && this.running >= running) return null
    const rated = rate === null ? now : Math.ceil(startableAt(rate, this.full, cost) / 1000)
    return Math.max(0, this.#pausedUntil - now, rated - now)
  }

  /** A waiting job starts to run. */
  start(now: number, cost: number): void {
    const { rate } = this.limits
    if (rate !== null) this.full = fullAfter(rate, this.full, now * 1000, cost)
    this.move('waiting', 'running')
  }

  /** `count` jobs went from one state to another; null: from, or to, not being there. */
  move(from: JobState | null, to: JobState | null, count = 1): void {
    if (count === 0) return
    if (from !== null) this.#change(from, -count)
    if (to !== null) this.#change(to, count)
    // Another job may have taken the place that one left, but a push between the two met a full queue.
    if (this.settings.capacity !== null && isHeld(from) && !isHeld(to)) this.bells.add('room')
    if (from === 'running' && this.hasLimits) this.bells.add('work')
    if (to !== 'waiting') return
    this.counts.ready_total += count
    this.bells.add('work')
  }

  #change(state: JobState, by: number): void {
    this.counts[state] += by
    if (isHeld(state)) this.room -= by
    if (state === 'running') this.running += by
  }

  /** Jobs reached a final state; where it is not kept, they are gone at once. */
  finish(from: JobState, to: FinalState, ids: readonly string[], count = ids.length): void {
    this.move(from, this.keeps(to) ? to : null, count)
    this.counts.finished_total += count
    this.finished.push(...ids)
    if (to !== 'cancelled' || from !== 'running') return
    this.counts.cancelled_total += count
    this.cancelled.push(...ids)
  }
}

export class Queues {
  readonly #statements: Statements
  readonly #known = new Map<string, QueueChanges | null>()
  #written: QueueChanges[] = []

  constructor(statements: Statements) {
    this.#statements = statements
  }

  find(name: string): QueueChanges | null {
    let queue = this.#known.get(name)
    if (queue === undefined) {
      const row = this.#statements.get('counts/queue').get({ queue: name })
      queue = row === undefined ? null : new QueueChanges(name, row)
      this.#known.set(name, queue)
    }
    return queue
  }

  findOrCreate(name: string): QueueChanges {
    const found = this.find(name)
    if (found !== null) return found
    this.#statements.get('counts/create').run({ queue: name })
    this.#known.delete(name)
    return this.findOrCreate(name)
  }

  /** Waiting jobs of a grouped queue that are in no line yet come into their groups' lines, up to 1,000 of them. */
  lineUp(queue: string): void {
    if (!this.findOrCreate(queue).limits.grouped) return
    for (const name of ['line_up_groups', 'line_up']) this.#statements.get(`limits/${name}`).run({ queue })
  }

  /** Before the commit, and before a statement that reads or changes the queues' rows. They are read anew when next asked for. */
  write(): void {
    for (const queue of this.#known.values()) {
      if (queue === null) continue
      const { name, counts } = queue
      if (Object.values(counts).some((by) => by !== 0)) {
        this.#statements.get('counts/add').run({ queue: name, ...counts })
      }
      this.#written.push(queue)
    }
    this.forget()
  }

  /** What was not written is void, as after a rollback to a savepoint. */
  forget(): void {
    this.#known.clear()
  }

  /** Before a transaction, and after a rollback: others may have changed everything. */
  discard(): void {
    this.forget()
    this.#written = []
  }

  /** After the commit: what it wrote. */
  take(): QueueChanges[] {
    return this.#written.splice(0)
  }
}
