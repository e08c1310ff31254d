/**
 * What one transaction knows and changes of each queue. Changes of counts are summed here and written once per queue before
 * the commit, since an update of the queue's row per job would cost as much as the job itself.
 */
import type { FinalState, JobState, LiveState } from '../../values/jobs/records.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { SOON } from '../bells.ts'
import type { Fences } from './connection/fences.ts'
import type { Statements } from './connection/statements.ts'
import { flag, integer, integerOrNull, type Row, textOrNull } from './connection/values.ts'

/** What an operation works on: one connection, in one transaction. */
export interface StoreContext {
  statements: Statements
  queues: Queues
  fences: Pick<Fences, 'floor' | 'accept'>
  /** The time to act on. */
  now: number
}

/** Of a queue that does not exist. */
export const DEFAULT_LEASE = DEFAULTS.queue.lease

/** As `counts/queue` tells of it. */
const settingsFrom = (row: Row) => ({
  keepDone: integer(row.keep_done),
  keepDead: integer(row.keep_dead),
  isPaused: flag(row.paused),
  attempts: integer(row.attempts),
  timeout: integerOrNull(row.timeout),
  lease: integer(row.lease),
  isGrouped: flag(row.grouped),
  isBounded: flag(row.bounded),
  isLimited: flag(row.limited),
  slots: integerOrNull(row.slots),
  heldUntil: integer(row.held_until),
  claimedAt: integer(row.claimed_at),
  limits: textOrNull(row.limits),
  usesOnce: flag(row.once),
  usesGraphs: flag(row.graphs),
})

/** Whether it has not ended. */
export const isLive = (state: JobState): state is LiveState =>
  state === 'blocked' || state === 'scheduled' || state === 'waiting' || state === 'running'

const KINDS = ['state', 'total', 'sign'] as const
type Kind = (typeof KINDS)[number]

export class Queue {
  readonly name: string
  readonly settings: ReturnType<typeof settingsFrom>
  /** How many more jobs the capacity allows, counting those of this transaction. */
  room: number
  /** By how much its counts change: of kinds and names, see the table millpond_counts. */
  readonly #counts: Record<Kind, Map<string, number>> = { state: new Map(), total: new Map(), sign: new Map() }
  /** The ids of live jobs that reached a final state or were removed, and of those of them that were stopped while running. */
  readonly finished: string[] = []
  readonly cancelled: string[] = []

  /** Whether its row, or any of its counts, was changed. */
  isChanged = false

  constructor(name: string, row: Row) {
    this.name = name
    this.settings = settingsFrom(row)
    this.room = integerOrNull(row.room) ?? Number.POSITIVE_INFINITY
  }

  keeps(state: FinalState): boolean {
    return (state === 'done' ? this.settings.keepDone : this.settings.keepDead) > 0
  }

  /** `count` jobs went from one state to another; null: from, or to, not being there. @param dueIn of scheduled ones, in milliseconds */
  move(from: JobState | null, to: JobState | null, count = 1, dueIn = Number.POSITIVE_INFINITY): void {
    if (count === 0) return
    this.#add(from, -count)
    this.#add(to, count)
    if (to === 'waiting' || this.#letsAnotherStart(from, to)) this.count('sign', 'ready', count)
    if (to === 'scheduled' && dueIn < SOON) this.count('sign', 'soon', count)
  }

  /** By its end, a job that waits, is parked or is to be retried may let another one start. What `finished` tells of is left out. */
  #letsAnotherStart(from: JobState | null, to: JobState | null): boolean {
    const { isLimited, isGrouped } = this.settings
    return (
      (isLimited || isGrouped) &&
      (from === 'waiting' ? to !== 'running' : from === 'running' && (to === 'scheduled' || to === 'blocked'))
    )
  }

  #add(state: JobState | null, count: number): void {
    if (state === null) return
    this.count('state', state, count)
    if (state === 'blocked' || state === 'scheduled' || state === 'waiting') this.room -= count
  }

  /** A job reached a final state; where it is not kept, it is gone at once. */
  finish(from: JobState, to: FinalState, id: string): void {
    this.move(from, this.keeps(to) ? to : null)
    this.count('total', to, 1)
    this.#ended(id, to === 'cancelled' && from === 'running')
  }

  /** A job is known no more. Who waits for a live one looks then. */
  remove(from: JobState, id: string): void {
    this.move(from, null)
    if (isLive(from)) this.#ended(id, from === 'running')
  }

  pushed(to: 'blocked' | 'waiting' | 'scheduled', count: number, dueIn?: number): void {
    this.move(null, to, count, dueIn)
    this.count('total', 'pushed', count)
  }

  count(kind: Kind, name: string, by: number): void {
    this.isChanged = true
    this.#counts[kind].set(name, (this.#counts[kind].get(name) ?? 0) + by)
  }

  /** What is to be written, as JSON. */
  get counts(): string {
    const changes = KINDS.flatMap((kind) => [...this.#counts[kind]].map(([name, count]) => [kind, name, count]))
    return JSON.stringify(changes)
  }

  #ended(id: string, wasStopped: boolean): void {
    this.count('sign', 'finished', 1)
    this.finished.push(id)
    if (!wasStopped) return
    this.count('sign', 'stopped', 1)
    this.cancelled.push(id)
  }
}

interface Given {
  settings: object
  /** How many queues had been removed from the file by then. */
  removals: number
}

export class Queues {
  readonly #statements: Statements
  readonly #known = new Map<string, Queue>()
  /** What this process has set: for a queue whose row goes otherwise than by `remove`, as when another program empties the tables. */
  readonly #given = new Map<string, Given>()
  #written: Queue[] = []

  constructor(statements: Statements) {
    this.#statements = statements
  }

  find(name: string): Queue | undefined {
    const row = this.#known.has(name) ? undefined : this.#statements.get('counts/queue', { queue: name })
    if (row !== undefined) this.#known.set(name, new Queue(name, row))
    return this.#known.get(name)
  }

  findOrCreate(name: string): Queue {
    const found = this.find(name)
    if (found !== undefined) return found
    const given = this.#givenTo(name)
    if (given === undefined) this.#statements.run('counts/create', { queue: name })
    else this.#statements.run('configure/configure', { queue: name, settings: JSON.stringify(given) })
    return this.findOrCreate(name)
  }

  configure(name: string, given: object): void {
    this.write()
    this.#statements.run('configure/configure', { queue: name, settings: JSON.stringify(given) })
    this.#given.set(name, { settings: { ...this.#givenTo(name), ...given }, removals: this.#removals() })
  }

  /** Its row is gone, by `remove`. */
  removed(name: string): void {
    this.#given.delete(name)
    this.forget()
  }

  /** Of a queue that may have been removed: nothing. It comes back as a new one. */
  #givenTo(name: string): object | undefined {
    const given = this.#given.get(name)
    if (given === undefined || this.#removals() <= given.removals) return given?.settings
    this.#given.delete(name)
    return undefined
  }

  #removals(): number {
    return integer(this.#statements.get('remove/known')?.removals)
  }

  /** Waiting jobs of a grouped queue that are in no line yet come into their groups' lines, up to 1,000 of them. */
  lineUp(queue: string): void {
    if (!this.findOrCreate(queue).settings.isGrouped) return
    for (const name of ['line_up_groups', 'line_up']) this.#statements.run(`limits/${name}`, { queue })
  }

  /** Before the commit, and before a statement that reads or changes the queues' rows. They are read anew when next asked for. */
  write(): void {
    for (const queue of this.#known.values()) {
      if (!queue.isChanged) continue
      this.#statements.run('counts/add', { queue: queue.name, counts: queue.counts })
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
  take(): Queue[] {
    return this.#written.splice(0)
  }
}
