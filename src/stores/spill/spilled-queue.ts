/**
 * What this process knows of one queue in the durable store, and the way back from there.
 *
 * Order: of each priority, the jobs in memory come before those in the durable store. So a push goes to the durable store
 * while a job of its priority or a higher one waits there, and a take gives the store's first jobs, which go behind those
 * in memory. A claim first takes what has a higher priority than all that waits in memory.
 *
 * A take claims jobs in the durable store, removes them there, and puts them into memory:
 *
 *   waiting there ──claim──► running there, and coming ──remove──► gone there, and coming ──restore──► waiting in memory
 *
 * Its lease outlasts a take. If the process ends in the middle, the sweep gives the jobs back that were not removed yet.
 */
import type { Claimed, JobRecord, Store } from '../../store.ts'
import { DEFAULTS } from '../../values/contract-defaults.ts'
import { Groups } from '../memory/groups.ts'
import type { MemoryState } from '../memory/state.ts'
import type { Exclusion } from './exclusion.ts'
import { frontOf } from './names.ts'
import { persistent } from './persistence.ts'

/** No priority: nothing waits. */
export const NONE = -1
export const HIGHEST = 9
/** Most jobs of a call. */
const MOST = 500
/** Milliseconds. After a crash in the middle of a take, its jobs wait for so long. */
const LEASE = 60_000
/** What the claims of takes are known by; a job that such a worker runs is one that waits. */
export const TAKER = 'spill:'

export interface Stores {
  readonly memory: Store
  readonly state: MemoryState
  readonly durable: Store
  readonly exclusion: Exclusion
  /** The worker's id of the takes of this process. */
  readonly taker: string
  readonly isClosed: () => boolean
}

export class SpilledQueue {
  readonly name: string
  readonly #stores: Stores
  /** No job that waits in the durable store has a higher priority; `NONE`: none waits there. */
  highest = NONE
  /** Jobs may be scheduled there. */
  scheduled = false
  /** Jobs may wait in the queue's front there. */
  front = false
  /** The durable store keeps finished jobs of the queue for as long as this process wants it. */
  told = false
  /** Counts pushes to the durable store. What was seen there before the last one no longer holds. */
  pushes = 0
  /** Jobs that are on their way back, as they will wait in memory. */
  readonly coming = new Map<string, JobRecord>()
  /** Pushes to the durable store that are under way, by priority. */
  readonly #underWay: number[] = new Array(HIGHEST + 1).fill(0)
  /** The highest priority that was pushed there during the present look. */
  #raised = NONE
  #taking: Promise<void> | undefined
  /** Settles when the jobs that are coming are in memory. */
  arriving: Promise<void> | undefined

  constructor(name: string, stores: Stores) {
    this.name = name
    this.#stores = stores
  }

  /** Jobs may wait in the durable store. */
  get mayWait(): boolean {
    return this.front || this.highest > NONE
  }

  /** Jobs may wait or be scheduled there, or are on their way. */
  get mayHaveLive(): boolean {
    return this.mayWait || this.scheduled || this.coming.size > 0 || this.isPushing
  }

  get isPushing(): boolean {
    return this.#underWay.some((count) => count > 0)
  }

  get taking(): Promise<void> | undefined {
    return this.#taking
  }

  /** How many more jobs memory takes. */
  get room(): number {
    const queue = this.#stores.state.queues.get(this.name)
    const capacity = (queue === undefined ? undefined : queue.settings.capacity) ?? DEFAULTS.memory.capacity
    // Where groups take turns, a group that is at its limit must not keep others in the durable store.
    if (queue?.waiting instanceof Groups) return MOST
    return capacity - (queue === undefined ? 0 : queue.waiting.size + queue.scheduled.size)
  }

  /** Half of what memory takes is free. */
  get isLow(): boolean {
    const queue = this.#stores.state.queues.get(this.name)
    const size = queue === undefined ? 0 : queue.waiting.size + queue.scheduled.size
    return this.room >= Math.max(1, size)
  }

  /** The priority of the first job that waits in memory. */
  get #first(): number {
    const waiting = this.#stores.state.queues.get(this.name)?.waiting
    // The turns of groups are over all jobs, so all are wanted in memory.
    return waiting === undefined || waiting instanceof Groups ? NONE : (waiting.first?.priority ?? NONE)
  }

  /** Jobs of this priority or a higher one may wait in the durable store before all that waits in memory. */
  isAhead(minPriority: number): boolean {
    return this.front || (this.highest >= minPriority && this.highest > this.#first)
  }

  /** A push to the durable store begins. @returns what ends it */
  pushing(priorities: ReadonlySet<number>): () => void {
    this.pushes++
    for (const priority of priorities) {
      this.#underWay[priority] = (this.#underWay[priority] ?? 0) + 1
      this.highest = Math.max(this.highest, priority)
      this.#raised = Math.max(this.#raised, priority)
    }
    return () => {
      for (const priority of priorities) this.#underWay[priority] = (this.#underWay[priority] ?? 1) - 1
    }
  }

  /**
   * Brings back the first jobs of at least `minPriority`. One take is under way at a time; a call meanwhile waits for that.
   * @param limit most jobs, but for those of the front, which all come
   */
  take(limit: number, minPriority: number): Promise<void> {
    this.#taking ??= this.#take(limit, minPriority).finally(() => {
      this.#taking = undefined
    })
    return this.#taking
  }

  /** What comes before all that waits in memory, and as much else as there is room for. */
  takeFirst(limit: number, minPriority: number): Promise<void> {
    return this.take(Math.max(limit, this.room), Math.max(minPriority, this.#first + 1))
  }

  async #take(limit: number, minPriority: number): Promise<void> {
    if (this.front) await this.#takeFront()
    for (let left = limit; left > 0; ) {
      this.#raised = this.#underWay.findLastIndex((count) => count > 0)
      const asked = Math.min(left, MOST)
      const { jobs, retryAfter } = await this.#bring(this.name, asked, minPriority)
      const isLast = jobs.length < asked && retryAfter !== 0
      const last = jobs.at(-1)
      if (isLast) this.highest = Math.max(minPriority - 1, this.#raised)
      else if (last !== undefined) this.highest = Math.max(last.priority, this.#raised)
      if (isLast || last === undefined) return
      left -= jobs.length
    }
  }

  async #takeFront(): Promise<void> {
    this.front = false
    try {
      for (;;) {
        const { jobs, retryAfter } = await this.#bring(frontOf(this.name), MOST, 0)
        if (jobs.length === 0 || (jobs.length < MOST && retryAfter !== 0)) return
      }
    } catch (error) {
      this.front = true
      throw error
    }
  }

  async #bring(queue: string, limit: number, minPriority: number): Promise<Claimed> {
    const { durable, exclusion, taker, isClosed } = this.#stores
    const { claim, find } = durable.operations
    const began = performance.now()
    const { claimed, records } = await exclusion.take(async () => {
      const claimed = await claim({ queue, worker: taker, limit, minPriority, lease: LEASE })
      if (claimed.jobs.length === 0) return { claimed, records: [] }
      const ids = claimed.jobs.map(({ id }) => id)
      const inLease = () => !isClosed() && performance.now() - began < LEASE / 2
      const found = await persistent('a look at jobs in the spill store', () => find({ ids }), inLease)
      const fences = new Map(claimed.jobs.map(({ id, fence }) => [id, fence]))
      const records = found.flatMap((record) => (record !== null && holds(record, fences) ? [record] : []))
      for (const record of records) this.coming.set(record.id, waiting(record, this.name))
      return { claimed, records }
    })
    const arrival = this.#arrive(records)
    this.arriving = arrival.catch(() => {})
    await arrival
    return claimed
  }

  async #arrive(records: readonly JobRecord[]): Promise<void> {
    const { restore } = this.#stores.memory.operations
    try {
      const own = await this.#remove(records)
      const brought = own.flatMap(({ id }) => this.coming.get(id) ?? [])
      const outcomes = brought.length === 0 ? [] : await restore({ records: brought })
      // Several processes may share the durable store, so one of them may have the key in its memory. The job comes first.
      const refused = brought.filter((_, index) => outcomes[index] === 'existing').map((job) => ({ ...job, key: null }))
      if (refused.length > 0) await restore({ records: refused })
    } finally {
      for (const { id } of records) this.coming.delete(id)
      this.arriving = undefined
    }
  }

  /**
   * Removes jobs that this process has claimed. After a lost answer it looks before it tries again: a job that is not
   * there was removed by the first try.
   * @returns those that are this process's now
   */
  async #remove(records: readonly JobRecord[]): Promise<readonly JobRecord[]> {
    if (records.length === 0) return records
    const { find, remove } = this.#stores.durable.operations
    const fences = new Map(records.map(({ id, fence }) => [id, fence]))
    let own = records
    let isRepeated = false
    const goesOn = () => !this.#stores.isClosed()
    await persistent(
      'the removal of jobs from the spill store',
      async () => {
        let ids = own.map(({ id }) => id)
        if (isRepeated) {
          const found = await find({ ids })
          const lost = found.flatMap((record) => (record === null || holds(record, fences) ? [] : [record.id]))
          own = own.filter(({ id }) => !lost.includes(id))
          ids = own.map(({ id }) => id)
        }
        isRepeated = true
        if (ids.length > 0) await remove({ ids })
      },
      goesOn,
    )
    return own
  }
}

const holds = ({ id, state, fence }: JobRecord, fences: ReadonlyMap<string, number>): boolean =>
  state === 'running' && fences.get(id) === fence

/** A job that a take has claimed, as it was before. */
export function waiting(record: JobRecord, queue: string): JobRecord {
  return { ...record, queue, state: 'waiting', attempt: record.attempt - 1, startedAt: null, worker: null }
}
