/**
 * One run of a move. First it takes up what an earlier run has left. Then it goes over the queues of the source again and again:
 *
 *   pass over a queue ──► nothing was left to take ──► older jobs still run at the source: waits, and goes over it again
 *                                                  └─► none does: ends, unless it follows
 *
 * Within a pass, both ends work at once: while the target stores a batch, the source removes the one before, and then takes the next. So no
 * more than two batches are taken at any time. A job is removed only when the target has it, and stored only while it is taken, so it is
 * never in neither place.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { MillpondError } from '../values/errors/errors.ts'
import { JOB_STATES, type JobRecord } from '../values/jobs/records.ts'
import { Followers } from './followers.ts'
import { GraphMover } from './graph-mover.ts'
import type { LeftJob, MovedQueue, MoveOptions, MoveReport } from './options.ts'
import { Pace } from './pace.ts'
import { retried } from './retry.ts'
import type { Batch, Counts, QueueCounts, Source } from './source.ts'
import type { Fate, Left, Target } from './target.ts'

/** In ms: between two looks at a source that has nothing to take. */
const IDLE = 250
/** In ms: between two progress calls. */
const TOLD_EVERY = 1000
/** Jobs of a queue that stay at the source, in the report. */
const MOST_LISTED = 100

const noCounts = (): Counts => ({ blocked: 0, scheduled: 0, waiting: 0, running: 0, done: 0, dead: 0, cancelled: 0 })
const sum = (counts: Counts): number => JOB_STATES.reduce((total, state) => total + counts[state], 0)

export class Mover {
  readonly #source: Source
  readonly #graphs: GraphMover
  readonly #followers = new Followers()
  readonly #options: MoveOptions
  readonly #stop: AbortSignal
  readonly #prepare: (queue: string) => Promise<void>
  readonly #queues = new Map<string, MovedQueue>()
  /** Per queue, by id. */
  readonly #left = new Map<string, Map<string, Left>>()
  readonly #pace = new Pace()
  readonly #startedAt = Date.now()
  readonly #began = performance.now()
  #toldAt = performance.now()
  #moved = 0

  /** @param prepare is called for each queue before its first job */
  constructor(source: Source, target: Target, options: MoveOptions, prepare: (queue: string) => Promise<void>) {
    this.#source = source
    const { queues } = options
    this.#graphs = new GraphMover(source, target, (queue) => queues?.includes(queue) ?? true)
    this.#options = options
    this.#stop = options.signal ?? new AbortController().signal
    this.#prepare = prepare
  }

  async run(): Promise<Omit<MoveReport, 'schedules'>> {
    for (const entry of await this.#look()) await this.#carry(entry, this.#source.leftovers(entry.queue))
    for (;;) {
      let older = false
      const movedBefore = this.#moved
      for (const entry of await this.#look()) {
        if (this.#stop.aborted) break
        if (await this.#carry(entry, this.#source.pass(entry.queue))) older = true
        else older = (await this.#source.runsOlder(entry.queue, this.#startedAt)) || older
      }
      if (this.#stop.aborted) return this.#report(true)
      if (!older) await this.#graphs.endGone([...this.#queues.keys()])
      if (!older && this.#options.follow !== true) return this.#report(false)
      await this.#source.tend()
      await this.#tell()
      if (this.#moved === movedBefore) await sleep(IDLE, undefined, { signal: this.#stop }).catch(() => {})
    }
  }

  /** The queues to move. One that is new is prepared. */
  async #look(): Promise<MovedQueue[]> {
    const found = await wanted(this.#source, this.#options.queues)
    const entries: MovedQueue[] = []
    for (const { queue, counts } of found) {
      const known = this.#queues.get(queue)
      if (known === undefined && this.#options.settings !== false) await this.#prepare(queue)
      const entry = known ?? { queue, found: counts, moved: noCounts(), repeated: 0, left: {}, leftJobs: [] }
      this.#queues.set(queue, entry)
      entries.push(entry)
    }
    return entries
  }

  /** @returns whether it has moved jobs that were pushed before the start */
  async #carry(entry: MovedQueue, batches: AsyncIterable<Batch>): Promise<boolean> {
    const iterator = batches[Symbol.asyncIterator]()
    const left = new Map<string, Left>()
    let older = false
    let isFull = false
    let settle = async () => {}
    let next = await iterator.next()
    while (!next.done) {
      const batch = next.value
      const ahead = quietly(settle().then(() => (this.#stop.aborted || isFull ? NO_MORE : iterator.next())))
      const fates = await this.#store(batch).catch((error: unknown) => abandonAhead(ahead, error))
      // The jobs behind it stay with the workers of the source.
      isFull ||= fates.includes('full')
      settle = () => this.#settle(batch, fates, left)
      older = this.#count(entry, batch.records, fates, left) || older
      next = await ahead
      await this.#tell()
    }
    await settle()
    this.#leave(entry, left)
    return older
  }

  #store(batch: Batch): Promise<(Fate | undefined)[]> {
    return this.#try(async () => {
      if (performance.now() >= batch.renewAt) await batch.renew()
      const records = batch.records.map((record) => this.#followers.ofTarget(record))
      return this.#graphs.take(records, (children) => this.#carryChildren(children))
    })
  }

  /** A batch of jobs that wait for others, which are to go after them. */
  async #carryChildren(batch: Batch): Promise<void> {
    const name = batch.records[0]?.queue
    if (name !== undefined && !this.#queues.has(name)) await this.#look()
    const fates = await this.#store(batch)
    const left = new Map<string, Left>()
    await this.#settle(batch, fates, left)
    for (const [index, record] of batch.records.entries()) if (isThere(fates[index])) this.#graphs.went(record)
    const entry = name === undefined ? undefined : this.#queues.get(name)
    if (entry === undefined) return
    const all = new Map(this.#left.get(entry.queue))
    this.#count(entry, batch.records, fates, all)
    this.#leave(entry, new Map([...all, ...left]))
  }

  async #settle(batch: Batch, fates: readonly (Fate | undefined)[], left: Map<string, Left>): Promise<void> {
    const { records } = batch
    const there = records.filter((_, index) => isThere(fates[index]))
    for (const record of there) this.#followers.went(record)
    // What was pushed meanwhile to wait for them goes first, too.
    await this.#graphs.carryChildren(there, (children) => this.#carryChildren(children))
    await batch.remove(there)
    const full = records.filter((_, index) => fates[index] === 'full')
    if (full.length > 0) await batch.putBack(full, false)
    const refused = records.filter((_, index) => !isThere(fates[index]) && fates[index] !== 'full')
    if (refused.length > 0) await batch.putBack(refused, true)
    for (const [id, error] of batch.refused ?? []) left.set(id, error)
  }

  /** What has been left now, and what was left out because it had been before. */
  #leave(entry: MovedQueue, left: Map<string, Left>): void {
    const before = this.#left.get(entry.queue) ?? new Map<string, Left>()
    for (const [id, reason] of before) if (!left.has(id) && this.#source.rests?.(id)) left.set(id, reason)
    this.#left.set(entry.queue, left)
    entry.left = countsOf(left)
    entry.leftJobs = [...left].slice(0, MOST_LISTED).map(leftJob)
  }

  /** @returns whether there may be more of what the source had at the start */
  #count(
    entry: MovedQueue,
    records: readonly JobRecord[],
    fates: readonly (Fate | undefined)[],
    left: Map<string, Left>,
  ): boolean {
    let older = false
    records.forEach(({ id, state, pushedAt }, index) => {
      const fate = fates[index]
      if (fate === undefined) return
      left.delete(id)
      if (fate === 'moved') {
        this.#moved++
        entry.moved[state]++
      } else if (fate === 'repeated') entry.repeated++
      else left.set(id, fate)
      if (fate === 'full' || (isThere(fate) && pushedAt < this.#startedAt)) older = true
    })
    return older
  }

  async #tell(): Promise<void> {
    const { onProgress } = this.#options
    if (onProgress === undefined || performance.now() < this.#toldAt + TOLD_EVERY) return
    this.#toldAt = performance.now()
    onProgress(this.#pace.progress(this.#moved, await this.#remaining()))
  }

  async #remaining(): Promise<number> {
    const found = await wanted(this.#source, this.#options.queues)
    return found.reduce((total, { counts }) => total + sum(counts), 0)
  }

  async #report(stopped: boolean): Promise<Omit<MoveReport, 'schedules'>> {
    const queues = [...this.#queues.values()]
    const total = (of: (queue: MovedQueue) => number) => queues.reduce((all, queue) => all + of(queue), 0)
    return {
      queues,
      moved: this.#moved,
      repeated: total(({ repeated }) => repeated),
      left: total(({ left }) => Object.values(left).reduce((all, count) => all + count, 0)),
      remaining: await this.#remaining(),
      ms: Math.round(performance.now() - this.#began),
      stopped,
    }
  }

  #try<T>(call: () => Promise<T>): Promise<T> {
    return retried(call, (error: MillpondError) => this.#options.onTrouble?.(error), this.#stop)
  }
}

const NO_MORE: IteratorResult<Batch> = { done: true, value: undefined }

/** What is taken is given up: that which was sent to the target comes back after a while, or the next run takes it up. */
async function abandonAhead(ahead: Promise<IteratorResult<Batch>>, error: unknown): Promise<never> {
  const taken = await ahead.catch(() => NO_MORE)
  if (!taken.done) await taken.value.abandon().catch(() => {})
  throw error
}

const isThere = (fate: Fate | undefined): boolean => fate === 'moved' || fate === 'repeated'

const WHY = { KeyTaken: 'another live job at the target has its key', full: 'the queue of the target is full' }

const leftJob = ([id, left]: [string, Left]): LeftJob =>
  typeof left === 'string' ? { id, reason: left, why: WHY[left] } : { id, reason: left.code, why: left.message }

/** By reason. A pass may come to a job twice. */
function countsOf(left: ReadonlyMap<string, Left>): MovedQueue['left'] {
  const counts: MovedQueue['left'] = {}
  for (const { reason } of [...left].map(leftJob)) counts[reason] = (counts[reason] ?? 0) + 1
  return counts
}

/** Its failure is seen by who awaits it, a little later. */
function quietly<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}

/** The queues that were asked for. One that the source does not count may have jobs all the same, such as a queue of another program. */
export async function wanted(source: Source, names: readonly string[] | undefined): Promise<QueueCounts[]> {
  const counts = await source.counts(names)
  return (
    names?.map((name) => counts.find(({ queue }) => queue === name) ?? { queue: name, counts: noCounts() }) ?? counts
  )
}

/** What a move would find. */
export async function dryRun(
  source: Source,
  names: readonly string[] | undefined,
): Promise<Omit<MoveReport, 'schedules'>> {
  const began = performance.now()
  const queues = (await wanted(source, names)).map(({ queue, counts }): MovedQueue => {
    return { queue, found: counts, moved: noCounts(), repeated: 0, left: {}, leftJobs: [] }
  })
  const remaining = queues.reduce((total, { found }) => total + sum(found), 0)
  const ms = Math.round(performance.now() - began)
  return { queues, moved: 0, repeated: 0, left: 0, remaining, ms, stopped: false }
}
