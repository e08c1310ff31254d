/**
 * What this process knows of one queue in the durable store, and the way back from there.
 *
 * Order: of each priority, the jobs in memory come before those in the durable store. So a push goes to the durable store
 * while a job of its priority or a higher one waits there, and a take gives the store's first jobs, which go behind those
 * in memory. A claim first takes what has a higher priority than all that waits in memory.
 *
 * A take claims jobs in the durable store, removes them there, and puts them into memory:
 *
 *   waiting there ──claim──► running there ──remove──► nowhere ──restore──► waiting in memory
 *
 * If the process ends before the removal, the lease of the claim ends, and the jobs wait in the durable store again.
 *
 * Groups take turns in both stores. A claim first takes as many jobs as it wants, by the durable store's turns, and then
 * starts jobs by memory's turns, so no group waits for the end of another one's backlog.
 */

import type { Store } from '../../store.ts'
import type { Claimed, ClaimedJob, JobRecord } from '../../values/jobs/records.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { Groups } from '../memory/groups.ts'
import type { MemoryQueue } from '../memory/queue.ts'
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
  /** Pushes to the durable store that are under way, by priority. */
  readonly #underWay: number[] = new Array(HIGHEST + 1).fill(0)
  /** The highest priority that was pushed there during the present look. */
  #raised = NONE
  #taking: Promise<void> | undefined

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
    return this.mayWait || this.scheduled || this.#taking !== undefined || this.isPushing
  }

  get isPushing(): boolean {
    return this.#underWay.some((count) => count > 0)
  }

  get taking(): Promise<void> | undefined {
    return this.#taking
  }

  get #inMemory(): MemoryQueue | undefined {
    return this.#stores.state.queues.get(this.name)
  }

  get #isGrouped(): boolean {
    return this.#inMemory?.waiting instanceof Groups
  }

  get room(): number {
    return roomIn(this.#stores.state, this.name)
  }

  /** Half of what memory takes is free. */
  get isLow(): boolean {
    const queue = this.#inMemory
    return !this.#isGrouped && this.room >= Math.max(1, queue === undefined ? 0 : sizeOf(queue))
  }

  /** The priority of the first job that waits in memory. */
  get #first(): number {
    const waiting = this.#inMemory?.waiting
    return waiting === undefined || waiting instanceof Groups ? NONE : (waiting.first?.priority ?? NONE)
  }

  get hasInMemory(): boolean {
    const queue = this.#inMemory
    return queue !== undefined && queue.waiting.size > 0
  }

  /** The lowest priority at which a job in memory may start before those in the durable store. */
  startsFrom(minPriority: number): number {
    return this.#isGrouped && this.room <= 0 ? minPriority : Math.max(minPriority, this.highest)
  }

  /** A claim must look for jobs in the durable store first. */
  isAhead(minPriority: number): boolean {
    if (this.#isGrouped && this.room <= 0) return false
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
    const most = this.#isGrouped ? limit : Math.max(limit, this.room)
    return this.take(most, Math.max(minPriority, this.#first + 1))
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
    const { durable, exclusion, taker } = this.#stores
    return exclusion.take(async () => {
      const claimed = await durable.operations.claim({ queue, worker: taker, limit, minPriority, lease: LEASE })
      if (claimed.jobs.length > 0) await this.#arrive(claimed.jobs)
      return claimed
    })
  }

  async #arrive(jobs: readonly ClaimedJob[]): Promise<void> {
    const { durable, isClosed } = this.#stores
    const { find, remove } = durable.operations
    const fences = new Map(jobs.map(({ id, fence }) => [id, fence]))
    const ids = [...fences.keys()]
    const ours = (found: readonly (JobRecord | null)[]) =>
      found.flatMap((record) => (record !== null && holds(record, fences) ? [record] : []))
    const goesOn = () => !isClosed()
    let own = ours(await persistent('a look at jobs in the spill store', () => find({ ids }), goesOn))
    let isRepeated = false
    async function removeOwn(): Promise<void> {
      if (isRepeated) {
        // A job that is not there was removed by the call whose answer was lost. One that another process has is not ours.
        const found = await find({ ids: own.map(({ id }) => id) })
        own = own.filter((_, index) => ours([found[index] ?? null]).length > 0 || found[index] === null)
      }
      isRepeated = true
      if (own.length > 0) await remove({ ids: own.map(({ id }) => id) })
    }
    try {
      await persistent('the removal of jobs from the spill store', removeOwn, goesOn)
    } catch (error) {
      // Whether they are still there is not known. Twice is better than lost, and a hand-over leaves out what is there.
      await this.#putBack(own)
      throw error
    }
    await this.#putBack(own)
  }

  async #putBack(records: readonly JobRecord[]): Promise<void> {
    const { restore } = this.#stores.memory.operations
    const jobs = records.map((record) => waiting(record, this.name))
    const outcomes = await restore({ records: jobs })
    // Several processes may share the durable store, so one of them may have the key in its memory. The job comes first.
    const refused = jobs.filter((_, index) => outcomes[index] === 'existing').map((job) => ({ ...job, key: null }))
    if (refused.length > 0) await restore({ records: refused })
  }
}

const sizeOf = ({ waiting, scheduled }: MemoryQueue): number => waiting.size + scheduled.size

/** How many more jobs memory takes. Groups that are held may fill the capacity, so others have as much again. */
export function roomIn(state: MemoryState, name: string): number {
  const queue = state.queues.get(name)
  if (queue === undefined) return DEFAULTS.memory.capacity
  const { capacity } = queue.settings
  if (capacity === null) return MOST
  return (queue.waiting instanceof Groups ? 2 * capacity : capacity) - sizeOf(queue)
}

const holds = ({ id, state, fence }: JobRecord, fences: ReadonlyMap<string, number>): boolean =>
  state === 'running' && fences.get(id) === fence

/** A job that a take has claimed, as it was before. */
export function waiting(record: JobRecord, queue: string): JobRecord {
  const { attempt, fence } = record
  return { ...record, queue, state: 'waiting', attempt: attempt - 1, fence: fence - 1, startedAt: null, worker: null }
}
