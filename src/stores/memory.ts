/**
 * The memory store: for work that may be lost with the process, and for tests. The same operations as every other store.
 *
 * URL: `memory:`, without path or options. Every `open` makes a store of its own; what is left in it ends with `close`.
 *
 * It is bounded, where others need not be:
 * - a queue holds 100,000 scheduled and waiting jobs unless `configure` says otherwise (`capacity: null`: without limit);
 * - of done, dead and cancelled jobs, each, a queue keeps the latest 10,000, however long they were to be kept.
 *
 * Every method does its work within the call, before it returns its promise, so that calls take effect in the order in
 * which they are made; only the answer to a push may come a turn of the event loop later (`memory/breath.ts`). The path of a job through the structures is told in `memory/queue.ts`.
 */

import '../runtime.ts'
import { delayAfter } from '../backoff.ts'
import { MillpondError } from '../errors.ts'
import { shownName } from '../options.ts'
import {
  type Bell,
  type Capabilities,
  type Claimed,
  type ClaimRequest,
  type Completion,
  type ExtendOutcome,
  type Extension,
  type FailOutcome,
  type Failure,
  type FinalState,
  type HistogramSlice,
  type Hold,
  type HoldOutcome,
  type JobRecord,
  type NewJob,
  type OpenStore,
  type PushOutcome,
  type QueueSettings,
  type QueueStats,
  type Store,
  type StoreAdmin,
  type Swept,
  setsNothing,
} from '../store.ts'
import { Bells } from './bells.ts'
import { IdleQueues } from './idle.ts'
import { MemoryAdmin } from './memory/admin.ts'
import { Breath } from './memory/breath.ts'
import { Claim, copyEncoded, copyError, isFinal, Job, ORIGIN } from './memory/job.ts'
import { DEFAULT_LEASE, MemoryQueue } from './memory/queue.ts'

export const open: OpenStore = async (url, options) => {
  // Nothing may stand before the query: no host, no path.
  const [address, query = ''] = String(url).split('?')
  if (address !== 'memory:' && address !== 'memory://') {
    throw new MillpondError(
      'InvalidOption',
      'The memory store is opened with "memory:" and nothing more: no host, no path.',
    )
  }
  for (const name of [...new URLSearchParams(query).keys(), ...Object.keys(options)]) {
    if (name === 'clock') continue
    throw new MillpondError('InvalidOption', `The memory store has no option ${shownName(name)}; leave it out.`)
  }
  return new MemoryStore(options.clock ?? Date.now)
}

class MemoryStore implements Store {
  readonly name = 'memory'
  readonly capabilities: Capabilities = { durable: false, shared: false, transactions: false }
  readonly admin: StoreAdmin
  readonly #clock: () => number
  readonly #jobs = new Map<string, Job>()
  readonly #queues = new Map<string, MemoryQueue>()
  readonly #idle = new IdleQueues()
  readonly #bells = new Bells()
  readonly #breath = new Breath()
  #places = 0
  #closed = false

  constructor(clock: () => number) {
    this.#clock = clock
    this.admin = new MemoryAdmin({
      jobs: this.#jobs,
      queues: this.#queues,
      now: () => this.#now(),
      assertOpen: () => this.#assertOpen(),
      woke: (queue) => this.#bells.ring('work', queue.name),
    })
  }

  async configure(settings: QueueSettings): Promise<void> {
    this.#assertOpen()
    if (setsNothing(settings)) return
    const queue = this.#queue(settings.queue)
    queue.configure(settings)
    // Either may be what someone waits for: a raised capacity, or the end of a pause.
    if (settings.capacity !== undefined) this.#bells.ring('room', queue.name)
    if (settings.paused === false) this.#bells.ring('work', queue.name)
  }

  async push(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    this.#assertOpen()
    const now = this.#now()
    const outcomes: PushOutcome[] = []
    let queue: MemoryQueue | undefined
    for (const job of jobs) {
      if (queue?.name !== job.queue) queue = this.#queue(job.queue)
      outcomes.push(this.#pushOne(queue, job, now))
    }
    const breath = this.#breath.taken()
    if (breath !== undefined) await breath
    return outcomes
  }

  #pushOne(queue: MemoryQueue, job: NewJob, now: number): PushOutcome {
    const known = job.fresh === true ? undefined : this.#jobs.get(job.id)
    const existing = known ?? (job.key === null ? undefined : queue.keys.get(job.key))
    if (existing !== undefined) return { status: 'existing', id: existing.id }
    if (queue.full) return { status: 'full', id: job.id }
    const dueAt = Math.max(now, job.runAt === null ? now + job.delay : job.runAt - ORIGIN)
    const stored = new Job(job, queue, this.#places++, now, dueAt)
    this.#jobs.set(stored.id, stored)
    queue.add(stored)
    if (stored.state === 'waiting') this.#bells.ring('work', queue.name)
    return { status: 'pushed', id: job.id }
  }

  async claim({ queue: name, worker, limit, lease: asked }: ClaimRequest): Promise<Claimed> {
    this.#assertOpen()
    const now = this.#now()
    const queue = this.#queues.get(name)
    const lease = asked ?? queue?.lease ?? DEFAULT_LEASE
    const claimed: Claimed = { now: ORIGIN + now, lease, jobs: [], retryAfter: null }
    if (queue === undefined || queue.paused) return claimed
    while (claimed.jobs.length < limit) {
      const job = queue.waiting.first
      if (job === null) break
      queue.run(job, worker, now, lease)
      claimed.jobs.push(new Claim(job))
    }
    if (claimed.jobs.length > 0) this.#bells.ring('room', name)
    if (claimed.jobs.length < limit) claimed.retryAfter = queue.nextDueIn(now)
    return claimed
  }

  async complete(name: string, completions: readonly Completion[]): Promise<HoldOutcome[]> {
    this.#assertOpen()
    const now = this.#now()
    const queue = this.#queues.get(name)
    const outcomes: HoldOutcome[] = []
    for (const completion of completions) {
      const job = this.#held(name, completion)
      if (job === undefined || queue === undefined) {
        outcomes.push('stale')
        continue
      }
      job.result = copyEncoded(completion.result)
      queue.finish(job, 'done', now)
      this.#bells.ring('finished', name, job.id)
      outcomes.push('ok')
    }
    return outcomes
  }

  async fail(name: string, failures: readonly Failure[]): Promise<FailOutcome[]> {
    this.#assertOpen()
    const now = this.#now()
    const queue = this.#queues.get(name)
    return failures.map((failure) => {
      const job = this.#held(name, failure)
      if (job === undefined || queue === undefined) return 'stale'
      job.error = copyError(failure.error)
      if (failure.delay === null || job.attempt >= job.attempts) {
        queue.finish(job, 'dead', now)
        this.#bells.ring('finished', name, job.id)
        return 'dead'
      }
      const delay = failure.delay === 'backoff' ? delayAfter(queue.backoff, job.attempt, Math.random()) : failure.delay
      if (delay > 0) {
        queue.schedule(job, now + delay)
        return 'retry'
      }
      job.dueAt = now
      queue.wait(job)
      this.#bells.ring('work', name)
      return 'retry'
    })
  }

  async release(name: string, holds: readonly Hold[]): Promise<HoldOutcome[]> {
    this.#assertOpen()
    const queue = this.#queues.get(name)
    return holds.map((hold) => {
      const job = this.#held(name, hold)
      if (job === undefined || queue === undefined) return 'stale'
      job.forgetClaim()
      queue.wait(job)
      this.#bells.ring('work', name)
      return 'ok'
    })
  }

  async extend(name: string, asked: number | null, extensions: readonly Extension[]): Promise<ExtendOutcome[]> {
    this.#assertOpen()
    const now = this.#now()
    const queue = this.#queues.get(name)
    const lease = asked ?? queue?.lease ?? DEFAULT_LEASE
    return extensions.map((extension) => {
      const job = this.#jobs.get(extension.id)
      if (job === undefined || queue === undefined || job.queue !== name || job.fence !== extension.fence)
        return 'stale'
      if (job.state !== 'running') return job.state === 'cancelled' ? 'cancelled' : 'stale'
      if (extension.progress !== null) job.progress = copyEncoded(extension.progress)
      queue.extend(job, now, lease)
      return 'ok'
    })
  }

  async cancel(ids: readonly string[]): Promise<(FinalState | null)[]> {
    this.#assertOpen()
    const now = this.#now()
    return ids.map((id) => {
      const job = this.#jobs.get(id)
      if (job === undefined) return null
      if (isFinal(job.state)) return job.state
      const waited = job.state !== 'running'
      this.#queue(job.queue).finish(job, 'cancelled', now)
      this.#bells.ring('cancelled', job.queue, id)
      this.#bells.ring('finished', job.queue, id)
      if (waited) this.#bells.ring('room', job.queue)
      return 'cancelled'
    })
  }

  async sweep(limit: number): Promise<Swept> {
    this.#assertOpen()
    const now = this.#now()
    const swept: Swept = { lost: [], promoted: 0, expired: 0, more: false, nextDue: null, queues: 0 }
    for (const queue of this.#queues.values()) {
      this.#promote(queue, now, limit, swept)
      this.#takeBack(queue, now, limit, swept)
      swept.expired += queue.expire(now, limit - swept.expired)
      queue.histograms.expire(ORIGIN + now)
      const due = queue.nextDueIn(now)
      if (due !== null) swept.nextDue = Math.min(swept.nextDue ?? due, due)
    }
    this.#removeIdle(now)
    swept.queues = this.#queues.size
    swept.more = swept.promoted >= limit || swept.lost.length >= limit || swept.expired >= limit
    return swept
  }

  #removeIdle(now: number): void {
    const idle = [...this.#queues.values()].flatMap((queue) => (queue.idle ? [queue.name] : []))
    for (const name of this.#idle.found(idle, now)) this.#queues.delete(name)
  }

  #promote(queue: MemoryQueue, now: number, limit: number, swept: Swept): void {
    for (; swept.promoted < limit; swept.promoted++) {
      const job = queue.scheduled.first
      if (job === undefined || job.dueAt > now) return
      queue.wait(job)
      this.#bells.ring('work', queue.name)
    }
  }

  #takeBack(queue: MemoryQueue, now: number, limit: number, swept: Swept): void {
    while (swept.lost.length < limit) {
      const job = queue.running.ended(now)
      if (job === null) return
      const state = job.attempt >= job.attempts ? 'dead' : 'waiting'
      swept.lost.push({ id: job.id, queue: job.queue, attempt: job.attempt, state })
      if (state === 'dead') {
        job.error = { code: 'LeaseLost', name: 'MillpondError', message: `Worker ${job.worker} fell silent.` }
        queue.finish(job, 'dead', now)
        this.#bells.ring('finished', queue.name, job.id)
      } else {
        job.dueAt = now
        queue.wait(job)
        this.#bells.ring('work', queue.name)
      }
    }
  }

  async find(ids: readonly string[]): Promise<(JobRecord | null)[]> {
    this.#assertOpen()
    return ids.map((id) => this.#jobs.get(id)?.toRecord() ?? null)
  }

  async stats(options: { queue?: string; minutes?: number }): Promise<QueueStats[]> {
    this.#assertOpen()
    const now = this.#now()
    const stats: QueueStats[] = []
    for (const queue of this.#queues.values()) {
      if (options.queue !== undefined && options.queue !== queue.name) continue
      const oldest = queue.waiting.oldestDue()
      stats.push({
        queue: queue.name,
        paused: queue.paused,
        capacity: queue.capacity,
        counts: queue.counts(),
        oldestWaiting: oldest === null ? null : now - oldest,
        histograms: queue.histograms.merged(options.minutes ?? 0, ORIGIN + now),
      })
    }
    return stats
  }

  async record(slices: readonly HistogramSlice[]): Promise<void> {
    this.#assertOpen()
    const now = this.#clock()
    for (const slice of slices) this.#queues.get(slice.queue)?.histograms.record(slice, now)
  }

  listen(listener: (bell: Bell) => void): () => void {
    this.#assertOpen()
    return this.#bells.listen(listener)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#bells.silence()
    this.#queues.clear()
    this.#jobs.clear()
  }

  /** Milliseconds since `ORIGIN`. `trunc` makes V8 keep a small integer from the first call on. */
  #now(): number {
    return Math.trunc(this.#clock() - ORIGIN)
  }

  /** The job of a claim that still holds. */
  #held(queue: string, { id, fence, claim }: Hold): Job | undefined {
    const holds = (job: Job | undefined) => job?.state === 'running' && job.fence === fence && job.queue === queue
    // A look-up among many jobs costs as much as all else that is done here, so the claim's own word is taken first.
    if (claim instanceof Claim && claim.id === id && holds(claim.job)) return claim.job
    const job = this.#jobs.get(id)
    return holds(job) ? job : undefined
  }

  #queue(name: string): MemoryQueue {
    let queue = this.#queues.get(name)
    if (queue === undefined) {
      queue = new MemoryQueue(name, this.#jobs)
      this.#queues.set(name, queue)
    }
    return queue
  }

  #assertOpen(): void {
    if (this.#closed) throw new MillpondError('Closed', 'The memory store is closed; open a new one to go on.')
  }
}
