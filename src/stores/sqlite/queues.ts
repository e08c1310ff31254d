/**
 * What one transaction knows and changes of each queue. Changes of counts are summed here and written once per queue before
 * the commit, since an update of the queue's row per job would cost as much as the job itself.
 */
import type { FinalState, JobState } from '../../store.ts'
import type { Statements } from './connection/statements.ts'
import { integer, integerOrNull, type Row } from './connection/values.ts'

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

export class QueueChanges {
  readonly name: string
  readonly settings: ReturnType<typeof settingsFrom>
  /** How many more jobs the capacity allows, counting those of this transaction. */
  room: number
  /** To be rung after the commit, beside those for `finished` and `cancelled`. */
  readonly bells = new Set<'work' | 'room'>()
  /** By how much the count of each state changed. */
  readonly counts = new Map<JobState, number>()
  /** Jobs that became waiting, reached a final state, and were cancelled while running. */
  readonly totals = { ready: 0, finished: 0, cancelled: 0 }
  /** The ids of the last two, where they are known. */
  readonly finished: string[] = []
  readonly cancelled: string[] = []

  constructor(name: string, row: Row) {
    this.name = name
    this.settings = settingsFrom(row)
    const { capacity } = this.settings
    this.room = capacity === null ? Number.POSITIVE_INFINITY : capacity - integer(row.held)
  }

  keeps(state: FinalState): boolean {
    return (state === 'done' ? this.settings.keepDone : this.settings.keepDead) > 0
  }

  /** `count` jobs went from one state to another; null: from, or to, not being there. */
  move(from: JobState | null, to: JobState | null, count = 1): void {
    if (from !== null) this.#change(from, -count)
    if (to !== null) this.#change(to, count)
    // Another job may have taken the place that one left, but a push between the two met a full queue.
    if (this.settings.capacity !== null && isHeld(from) && !isHeld(to) && count > 0) this.bells.add('room')
    if (to !== 'waiting' || count === 0) return
    this.totals.ready += count
    this.bells.add('work')
  }

  #change(state: JobState, by: number): void {
    this.counts.set(state, (this.counts.get(state) ?? 0) + by)
    if (isHeld(state)) this.room -= by
  }

  /** Jobs reached a final state; where it is not kept, they are gone at once. */
  finish(from: JobState, to: FinalState, ids: readonly string[], count = ids.length): void {
    this.move(from, this.keeps(to) ? to : null, count)
    this.totals.finished += count
    this.finished.push(...ids)
    if (to !== 'cancelled' || from !== 'running') return
    this.totals.cancelled += count
    this.cancelled.push(...ids)
  }
}

export class Queues {
  readonly #statements: Statements
  #known = new Map<string, QueueChanges | null>()
  #written: QueueChanges[] = []
  #last: QueueChanges | null = null

  constructor(statements: Statements) {
    this.#statements = statements
  }

  find(name: string): QueueChanges | null {
    // Nearly every call of a batch names the same queue.
    if (this.#last?.name === name) return this.#last
    let queue = this.#known.get(name)
    if (queue === undefined) {
      const row = this.#statements.get('counts/queue').get({ queue: name })
      queue = row === undefined ? null : new QueueChanges(name, row)
      this.#known.set(name, queue)
    }
    this.#last = queue
    return queue
  }

  findOrCreate(name: string): QueueChanges {
    const found = this.find(name)
    if (found !== null) return found
    this.#statements.get('counts/create').run({ queue: name })
    this.#known.delete(name)
    const created = this.find(name)
    if (created === null) throw new Error(`millpond: the queue ${name} could not be created`)
    return created
  }

  /** Before the commit, and before a statement that reads or changes the queues' rows. They are read anew when next asked for. */
  write(): void {
    for (const queue of this.#known.values()) {
      if (queue === null) continue
      const { name, counts, totals } = queue
      for (const [state, change] of counts) {
        if (change !== 0) this.#statements.get('counts/count').run({ queue: name, state, change })
      }
      if (totals.ready + totals.finished > 0) this.#statements.get('counts/totals').run({ queue: name, ...totals })
      this.#written.push(queue)
    }
    this.forget()
  }

  /** What was not written is void, as after a rollback to a savepoint. */
  forget(): void {
    if (this.#known.size > 0) this.#known = new Map()
    this.#last = null
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
