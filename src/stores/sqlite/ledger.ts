/**
 * What one transaction knows and changes of each queue. Counts are summed here and written once per queue before the
 * commit, since an update of the queue's row per job would cost as much as the job itself. The bells that the changes
 * ring follow from the sums; they are handed out only after the commit.
 */
import type { BackoffPolicy, Bell, FinalState, JobState } from '../../store.ts'
import type { Statements } from './statements.ts'
import { integer, integerOrNull, number } from './values.ts'

/** What happened to a queue, as the totals of its row count it. */
export interface Happened {
  ready: number
  finished: number
  cancelled: number
}

const held = (state: JobState | null): boolean => state === 'scheduled' || state === 'waiting'

export class Account {
  readonly name: string
  readonly capacity: number | null
  readonly keepDone: number
  readonly keepDead: number
  readonly paused: boolean
  /** For jobs, claims and failures that name none of their own. */
  readonly attempts: number
  readonly timeout: number | null
  readonly lease: number
  readonly backoff: BackoffPolicy
  /** How many more jobs the capacity allows, counting those of this transaction. */
  room: number
  /** A job left the queue's room, even if another took its place: whoever met a full queue in between has to hear of it. */
  #madeRoom = false
  /** By how much the count of each state changed. */
  readonly changes = new Map<JobState, number>()
  readonly happened: Happened = { ready: 0, finished: 0, cancelled: 0 }
  /** Of jobs that reached a final state, and of those cancelled while running. */
  readonly finished: string[] = []
  readonly cancelled: string[] = []

  constructor(name: string, row: Record<string, unknown>) {
    this.name = name
    this.capacity = integerOrNull(row.capacity)
    this.keepDone = integer(row.keep_done)
    this.keepDead = integer(row.keep_dead)
    this.paused = integer(row.paused) !== 0
    this.attempts = integer(row.attempts)
    this.timeout = integerOrNull(row.timeout)
    this.lease = integer(row.lease)
    this.backoff = {
      base: integer(row.backoff_base),
      factor: number(row.backoff_factor),
      max: integer(row.backoff_max),
      jitter: number(row.backoff_jitter),
    }
    this.room = this.capacity === null ? Number.POSITIVE_INFINITY : this.capacity - integer(row.held)
  }

  keeps(state: FinalState): boolean {
    return (state === 'done' ? this.keepDone : this.keepDead) > 0
  }

  /** `count` jobs went from one state to another; null: from, or to, not being there. */
  move(from: JobState | null, to: JobState | null, count = 1): void {
    if (held(from) && !held(to) && count > 0) this.#madeRoom = true
    if (from !== null) this.#change(from, -count)
    if (held(from)) this.room += count
    if (to === null) return
    this.#change(to, count)
    if (held(to)) this.room -= count
    if (to === 'waiting') this.happened.ready += count
  }

  #change(state: JobState, by: number): void {
    this.changes.set(state, (this.changes.get(state) ?? 0) + by)
  }

  /** A job reached a final state; where it is not kept, it is gone at once. */
  finish(id: string, from: JobState, to: FinalState): void {
    this.move(from, this.keeps(to) ? to : null)
    this.happened.finished++
    this.finished.push(id)
    if (to !== 'cancelled' || from !== 'running') return
    this.happened.cancelled++
    this.cancelled.push(id)
  }

  /** Running jobs reached it; the bell for these is rung by their own process, which knows their ids. */
  finishAll(count: number, to: FinalState): void {
    this.move('running', this.keeps(to) ? to : null, count)
    this.happened.finished += count
  }

  bells(): Bell[] {
    const { name: queue, happened, finished, cancelled } = this
    const bells: Bell[] = []
    if (happened.ready > 0) bells.push({ kind: 'work', queue })
    if (this.capacity !== null && this.#madeRoom) bells.push({ kind: 'room', queue })
    if (finished.length > 0) bells.push({ kind: 'finished', queue, ids: finished })
    if (cancelled.length > 0) bells.push({ kind: 'cancelled', queue, ids: cancelled })
    return bells
  }
}

/** What a transaction wrote of a queue. */
export interface Written {
  queue: string
  happened: Happened
  /** By how much these counts changed. */
  scheduled: number
  waiting: number
}

export class Ledger {
  readonly #statements: Statements
  #accounts = new Map<string, Account | null>()
  #bells: Bell[] = []
  #written: Written[] = []
  #last: Account | null = null

  constructor(statements: Statements) {
    this.#statements = statements
  }

  /** Of a queue that may not exist. */
  find(name: string): Account | null {
    // Nearly every call of a batch names the same queue.
    if (this.#last?.name === name) return this.#last
    let account = this.#accounts.get(name)
    if (account === undefined) {
      const row = this.#statements.get('counts/queue').get({ queue: name })
      account = row === undefined ? null : new Account(name, row)
      this.#accounts.set(name, account)
    }
    this.#last = account
    return account
  }

  open(name: string): Account {
    const account = this.find(name)
    if (account !== null) return account
    this.#statements.get('counts/create').run({ queue: name })
    this.#accounts.delete(name)
    const created = this.find(name)
    if (created === null) throw new Error(`millpond: the queue ${name} could not be created`)
    return created
  }

  /** After its settings were changed: writes what is summed up so far, and reads it anew when next asked for. */
  reopen(name: string): void {
    const account = this.#accounts.get(name)
    if (account !== undefined && account !== null) this.#write(account)
    this.#accounts.delete(name)
    this.#last = null
  }

  ring(bell: Bell): void {
    this.#bells.push(bell)
  }

  /** Before the commit. */
  write(): void {
    for (const account of this.#accounts.values()) if (account !== null) this.#write(account)
    this.forget()
  }

  #write(account: Account): void {
    const { name: queue, changes, happened } = account
    for (const bell of account.bells()) this.#bells.push(bell)
    for (const [state, change] of changes) {
      if (change !== 0) this.#statements.get('counts/count').run({ queue, state, change })
    }
    if (happened.ready + happened.finished + happened.cancelled > 0) {
      this.#statements.get('counts/totals').run({ queue, ...happened })
    }
    this.#written.push({
      queue,
      happened,
      scheduled: changes.get('scheduled') ?? 0,
      waiting: changes.get('waiting') ?? 0,
    })
  }

  /** After a rollback. */
  discard(): void {
    this.forget()
    this.#bells = []
    this.#written = []
  }

  /** Between transactions: others may change everything meanwhile. */
  forget(): void {
    if (this.#accounts.size > 0) this.#accounts = new Map()
    this.#last = null
  }

  /** After the commit: what it changed, and for whom to ring. */
  take(): { bells: Bell[]; written: Written[] } {
    const taken = { bells: this.#bells, written: this.#written }
    this.#bells = []
    this.#written = []
    return taken
  }
}
