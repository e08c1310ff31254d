/**
 * The contract once more, as plainly as it can be put: one list of jobs in the order of their places, and a filter for
 * everything. Slow and obvious on purpose; nothing here is shared with a store.
 */

import type {
  Claimed,
  ClaimRequest,
  Completion,
  ExtendOutcome,
  Extension,
  FailOutcome,
  Failure,
  FinalState,
  HistogramSlice,
  Hold,
  HoldOutcome,
  JobRecord,
  JobState,
  NewJob,
  PushOutcome,
  QueueSettings,
  QueueStats,
  Swept,
} from '../../src/store.ts'

const MINUTE = 60_000

export interface ModelJob extends JobRecord {
  fence: number
  leaseUntil: number
}

/** `capacity` undefined: never configured, and so the store's own. */
type ModelQueue = Required<Omit<QueueSettings, 'capacity'>> & { capacity: number | null | undefined }

const DEFAULTS = {
  capacity: undefined,
  keepDone: 60 * MINUTE,
  keepDead: 7 * 24 * 60 * MINUTE,
  paused: false,
  attempts: 10,
  timeout: null,
  lease: 30_000,
  backoff: { base: 1000, factor: 2, max: 60 * MINUTE, jitter: 0.5 },
}

export type ModelStats = Omit<QueueStats, 'capacity'> & { capacity: number | null | undefined }

const live = (job: ModelJob) => job.state === 'scheduled' || job.state === 'waiting' || job.state === 'running'

export class Model {
  now = 0
  jobs: ModelJob[] = []
  removed = false
  readonly queues = new Map<string, ModelQueue>()
  #slices: (HistogramSlice & { minute: number })[] = []

  configure(settings: QueueSettings): void {
    if (Object.keys(settings).length === 1) return
    Object.assign(this.#queue(settings.queue), settings)
  }

  push(jobs: readonly NewJob[]): PushOutcome[] {
    return jobs.map(({ delay, runAt, data, ...job }) => {
      const { capacity, attempts, timeout } = this.#queue(job.queue)
      const sameKey = this.#liveWithKey(job.queue, job.key)
      const existing = this.#job(job.id) ?? sameKey
      if (existing) return { status: 'existing', id: existing.id }
      const backlog = this.#in(job.queue, 'waiting').length + this.#in(job.queue, 'scheduled').length
      if (typeof capacity === 'number' && backlog >= capacity) return { status: 'full', id: job.id }
      const dueAt = Math.max(this.now, runAt ?? this.now + delay)
      this.jobs.push({
        ...job,
        attempts: job.attempts ?? attempts,
        timeout: job.timeout ?? timeout,
        data,
        state: dueAt > this.now ? 'scheduled' : 'waiting',
        attempt: 0,
        fence: 0,
        pushedAt: this.now,
        dueAt,
        startedAt: null,
        finishedAt: null,
        leaseUntil: 0,
        worker: null,
        progress: null,
        result: null,
        error: null,
      })
      return { status: 'pushed', id: job.id }
    })
  }

  /** After a queue was removed, the store may give out higher fences than the next ones. */
  raised(id: string, fence: number): void {
    const job = this.#job(id)
    if (this.removed && job !== undefined && fence > job.fence) job.fence = fence
  }

  claim({ queue, worker, limit, ...request }: ClaimRequest): Claimed {
    const known = this.queues.get(queue)
    const lease = request.lease ?? known?.lease ?? DEFAULTS.lease
    const jobs = known?.paused ? [] : this.list(queue, 'waiting').slice(0, limit)
    for (const job of jobs) {
      job.state = 'running'
      job.fence++
      job.attempt++
      job.startedAt = this.now
      job.worker = worker
      job.leaseUntil = this.now + lease
    }
    const due = this.list(queue, 'scheduled')[0]?.dueAt
    const tells = jobs.length < limit && known?.paused === false && due !== undefined
    return {
      now: this.now,
      lease,
      retryAfter: tells ? Math.max(0, due - this.now) : null,
      jobs: jobs.map(
        ({ id, fence, attempt, attempts, priority, group, key, timeout, trace, pushedAt, dueAt, data }) => {
          return { id, fence, attempt, attempts, priority, group, key, timeout, trace, pushedAt, dueAt, data }
        },
      ),
    }
  }

  complete(queue: string, completions: readonly Completion[]): HoldOutcome[] {
    return completions.map((completion) => {
      const job = this.#held(queue, completion)
      if (!job) return 'stale'
      job.result = completion.result
      this.#finish(job, 'done')
      return 'ok'
    })
  }

  fail(queue: string, failures: readonly Failure[]): FailOutcome[] {
    return failures.map((failure) => {
      const job = this.#held(queue, failure)
      if (!job) return 'stale'
      job.error = failure.error
      if (failure.delay === null || job.attempt >= job.attempts) {
        this.#finish(job, 'dead')
        return 'dead'
      }
      const delay = failure.delay === 'backoff' ? this.#backoff(job) : failure.delay
      job.state = delay === 0 ? 'waiting' : 'scheduled'
      job.dueAt = this.now + delay
      return 'retry'
    })
  }

  release(queue: string, holds: readonly Hold[]): HoldOutcome[] {
    return holds.map((hold) => {
      const job = this.#held(queue, hold)
      if (!job) return 'stale'
      Object.assign(job, { state: 'waiting', attempt: job.attempt - 1, startedAt: null, worker: null })
      return 'ok'
    })
  }

  extend(queue: string, asked: number | null, extensions: readonly Extension[]): ExtendOutcome[] {
    const lease = asked ?? this.queues.get(queue)?.lease ?? DEFAULTS.lease
    return extensions.map((extension) => {
      const job = this.#held(queue, extension)
      if (job) {
        job.leaseUntil = Math.max(job.leaseUntil, this.now + lease)
        job.progress = extension.progress ?? job.progress
        return 'ok'
      }
      const known = this.#job(extension.id)
      const cancelled = known?.state === 'cancelled' && known.fence === extension.fence && known.queue === queue
      return cancelled ? 'cancelled' : 'stale'
    })
  }

  cancel(ids: readonly string[]): (FinalState | null)[] {
    return ids.map((id) => {
      const job = this.#job(id)
      if (!job) return null
      if (live(job)) this.#finish(job, 'cancelled')
      return job.state === 'done' || job.state === 'dead' ? job.state : 'cancelled'
    })
  }

  /** All that there is to do, without a limit. */
  sweep(): Omit<Swept, 'more' | 'queues'> {
    const promoted = this.jobs.filter((job) => job.state === 'scheduled' && job.dueAt <= this.now)
    for (const job of promoted) job.state = 'waiting'
    const lost = this.jobs.filter((job) => job.state === 'running' && job.leaseUntil <= this.now)
    const told: Swept['lost'] = lost.map((job) => {
      const state = job.attempt >= job.attempts ? 'dead' : 'waiting'
      if (state === 'dead') {
        job.error = { code: 'LeaseLost', name: '', message: '' }
        this.#finish(job, 'dead')
      } else {
        job.state = 'waiting'
        job.dueAt = this.now
      }
      return { id: job.id, queue: job.queue, attempt: job.attempt, state }
    })
    const expired = this.jobs.filter((job) => {
      return job.finishedAt !== null && job.finishedAt + this.#keep(job.queue, job.state) <= this.now
    })
    this.jobs = this.jobs.filter((job) => !expired.includes(job))
    const due = this.jobs.filter((job) => job.state === 'scheduled').map((job) => job.dueAt - this.now)
    const nextDue = due.length === 0 ? null : Math.min(...due)
    return { lost: told, promoted: promoted.length, expired: expired.length, nextDue }
  }

  find(ids: readonly string[]): (JobRecord | null)[] {
    return ids.map((id) => {
      const job = this.#job(id)
      if (!job) return null
      const { fence: _, leaseUntil: __, ...record } = job
      return record
    })
  }

  list(queue: string, state: JobState): ModelJob[] {
    const jobs = this.#in(queue, state)
    if (state === 'waiting') return jobs.sort((a, b) => b.priority - a.priority)
    if (state === 'scheduled') return jobs.sort((a, b) => a.dueAt - b.dueAt)
    if (state === 'running') return jobs.sort((a, b) => a.leaseUntil - b.leaseUntil)
    return jobs.sort((a, b) => (b.finishedAt ?? 0) - (a.finishedAt ?? 0))
  }

  requeue(request: { ids: readonly string[] } | { queue: string; limit: number }): number {
    const jobs = 'ids' in request ? request.ids.map((id) => this.#job(id)) : this.list(request.queue, 'dead').reverse()
    let count = 0
    for (const job of jobs) {
      if ('limit' in request && count === request.limit) break
      if (!job || (job.state !== 'dead' && job.state !== 'cancelled') || this.#liveWithKey(job.queue, job.key)) continue
      const renewed = { state: 'waiting', attempt: 0, dueAt: this.now, startedAt: null, finishedAt: null, worker: null }
      Object.assign(job, renewed)
      count++
    }
    return count
  }

  /** Whether nobody uses the queue, so that a sweep may remove it. */
  idle(name: string): boolean {
    const { capacity, keepDone, keepDead, paused } = this.#queue(name)
    const isDefault = keepDone === 60 * MINUTE && keepDead === 7 * 24 * 60 * MINUTE && !paused
    return isDefault && typeof capacity !== 'number' && this.jobs.every(({ queue }) => queue !== name)
  }

  remove(name: string): void {
    this.removed = true
    this.queues.delete(name)
    this.#slices = this.#slices.filter(({ queue }) => queue !== name)
  }

  record(slices: readonly HistogramSlice[]): void {
    for (const slice of slices) this.#slices.push({ ...slice, minute: Math.floor(this.now / MINUTE) })
  }

  stats(minutes: number): ModelStats[] {
    return [...this.queues.values()].map(({ queue, paused, capacity }) => {
      const count = (state: JobState) => this.#in(queue, state).length
      const due = this.#in(queue, 'waiting').map((job) => job.dueAt)
      return {
        queue,
        paused,
        capacity,
        counts: {
          scheduled: count('scheduled'),
          waiting: count('waiting'),
          running: count('running'),
          done: count('done'),
          dead: count('dead'),
          cancelled: count('cancelled'),
        },
        oldestWaiting: due.length === 0 ? null : this.now - Math.min(...due),
        histograms: this.#merged(queue, minutes),
      }
    })
  }

  #merged(queue: string, minutes: number): HistogramSlice[] {
    const oldest = Math.floor(this.now / MINUTE) - minutes
    const merged: HistogramSlice[] = []
    for (const { minute, ...slice } of this.#slices) {
      if (slice.queue !== queue || minute <= oldest) continue
      let sum = merged.find(({ priority, metric }) => priority === slice.priority && metric === slice.metric)
      if (!sum) {
        sum = { ...slice, buckets: {} }
        merged.push(sum)
      }
      for (const [bucket, n] of Object.entries(slice.buckets)) {
        sum.buckets[Number(bucket)] = (sum.buckets[Number(bucket)] ?? 0) + n
      }
    }
    return merged
  }

  #finish(job: ModelJob, state: FinalState): void {
    job.state = state
    job.finishedAt = this.now
    if (this.#keep(job.queue, state) === 0) this.jobs = this.jobs.filter((other) => other !== job)
  }

  #keep(queue: string, state: JobState): number {
    const { keepDone, keepDead } = this.#queue(queue)
    return state === 'done' ? keepDone : keepDead
  }

  #queue(queue: string): ModelQueue {
    const known = this.queues.get(queue)
    if (known) return known
    const made = { queue, ...DEFAULTS }
    this.queues.set(queue, made)
    return made
  }

  /** The sequences set no jitter: what is left to chance is in vectors/backoff.json. */
  #backoff(job: ModelJob): number {
    const { base, factor, max } = this.#queue(job.queue).backoff
    return base === 0 ? 0 : Math.floor(Math.min(max, base * factor ** (job.attempt - 1)))
  }

  #in(queue: string, state: JobState): ModelJob[] {
    return this.jobs.filter((job) => job.queue === queue && job.state === state)
  }

  #job(id: string): ModelJob | undefined {
    return this.jobs.find((job) => job.id === id)
  }

  #liveWithKey(queue: string, key: string | null): ModelJob | undefined {
    return key === null ? undefined : this.jobs.find((job) => job.queue === queue && job.key === key && live(job))
  }

  #held(queue: string, { id, fence }: Hold): ModelJob | undefined {
    const job = this.#job(id)
    return job?.queue === queue && job.state === 'running' && job.fence === fence ? job : undefined
  }
}
