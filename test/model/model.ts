/**
 * The contract once more, as plainly as it can be put: one list of jobs in the order of their places, and a filter for
 * everything. Slow and obvious on purpose; nothing here is shared with a store.
 */

import type { HistogramSlice } from '../../src/values/figures/histogram.ts'
import type {
  Claimed,
  ClaimRequest,
  Completion,
  ExtendOutcome,
  Extension,
  FailOutcome,
  Failure,
  FinalState,
  HoldOutcome,
  JobRecord,
  JobState,
  NewJob,
  PushOutcome,
  Release,
} from '../../src/values/jobs/records.ts'
import type {
  JobUpdate,
  Requeued,
  RequeueRequest,
  RestoreOutcome,
  UpdateOutcome,
} from '../../src/values/operations/requests.ts'
import type { Swept } from '../../src/values/operations/swept.ts'
import type { GroupLimits, GroupRecord, HeldBack, LimitSettings, Rate } from '../../src/values/settings/limits.ts'
import type { QueueSettings } from '../../src/values/settings/settings.ts'
import { ModelHistograms } from './histograms.ts'
import { ModelJobs } from './jobs.ts'
import { dueOf, followerOf } from './once.ts'
import { backoffAfter, counted, givenBack, type Rated, step, waitFor } from './rates.ts'
import {
  claimOf,
  countsOf,
  DEFAULTS,
  inOrder,
  live,
  type ModelGroup,
  type ModelJob,
  type ModelQueue,
  type ModelStats,
  newJob,
  recordOf,
  settingsOf,
} from './state.ts'

export class Model extends ModelJobs {
  readonly #histograms = new ModelHistograms()

  configure(settings: QueueSettings): void {
    if (Object.keys(settings).length === 1) return
    const queue = Object.assign(this.queue(settings.queue), settings)
    if (queue.groupRunning !== null || queue.groupRate !== null) queue.grouped = true
  }

  settings(name: string): ReturnType<typeof settingsOf> {
    return settingsOf(this.queue(name))
  }

  isFollowed(id: string): boolean {
    const job = this.job(id)
    return job !== undefined && !job.follows && followerOf(this.jobs, job) !== undefined
  }

  limitGroup(name: string, group: string, limits: GroupLimits | null): void {
    const queue = this.queue(name)
    queue.grouped = true
    this.#group(queue, group).limits = limits
  }

  push(jobs: readonly NewJob[]): PushOutcome[] {
    /** The id under which a job of this call is known. */
    const known = new Map<string, string>()
    return jobs.map((pushed) => {
      const outcome = this.#push(pushed, (id) => this.job(known.get(id) ?? id))
      if (outcome.status !== 'held') known.set(pushed.id, outcome.id)
      return outcome
    })
  }

  #push(pushed: NewJob, find: (id: string) => ModelJob | undefined): PushOutcome {
    const { data, after = [], onDead = 'cancel', partOf, ...job } = pushed
    const { capacity, attempts, timeout } = this.queue(job.queue)
    if (this.job(job.id)) return { status: 'existing', id: job.id }
    const waits = after.length > 0
    const once = waits ? undefined : pushed.once
    const holder = this.liveWithKey(job.queue, job.key)
    const follower = holder && (once?.replace || once?.follow) ? followerOf(this.jobs, job) : undefined
    const replaced = follower ?? (once?.replace && holder?.state !== 'running' ? holder : undefined)
    if (replaced) {
      const dueAt = dueOf(pushed, replaced.pushedAt, this.now)
      this.update([{ id: replaced.id, data, runAt: dueAt }])
      return { status: 'replaced', id: replaced.id }
    }
    const follows = holder?.state === 'running' && once?.follow === true
    const existing = follows ? undefined : (holder ?? this.keys.find(job.queue, job.key, this.now))
    if (existing) return { status: waits ? 'held' : 'existing', id: existing.id }
    const backlog = (['blocked', 'waiting', 'scheduled'] as const).flatMap((state) => this.in(job.queue, state)).length
    if (typeof capacity === 'number' && backlog >= capacity) return { status: 'full', id: job.id }
    const parent = after.find((id) => !find(id)) ?? (live(find(partOf ?? '')) ? undefined : partOf)
    if (parent !== undefined) return { status: 'orphan', id: job.id, parent }
    const dueAt = dueOf(pushed, this.now, this.now)
    if (!follows && job.key !== null) this.keys.take(job)
    const own = { attempts: job.attempts ?? attempts, timeout: job.timeout ?? timeout }
    const stored = newJob(pushed, own, { dueAt, follows, now: this.now })
    const isFailed = this.graph.wait(
      stored,
      after.map((id) => find(id)?.id ?? id),
      onDead,
      find,
    )
    this.jobs.push(stored)
    this.total(job.queue, 'pushed')
    if (partOf !== undefined) this.graph.partOf(stored, find(partOf)?.id ?? partOf)
    if (isFailed) this.cancelFor(stored)
    return { status: 'pushed', id: job.id }
  }

  /** After a queue was removed, the store may give out higher fences than the next ones. */
  raised(id: string, fence: number): void {
    const job = this.job(id)
    if (this.removed && job !== undefined && fence > job.fence) job.fence = fence
  }

  claim({ queue: name, worker, limit, minPriority = 0, perGroup = 1, ...request }: ClaimRequest): Claimed {
    const queue = this.queues.get(name)
    const lease = request.lease ?? queue?.lease ?? DEFAULTS.lease
    const answer: Claimed = { now: this.now, lease, jobs: [], retryAfter: null, limited: false }
    if (queue === undefined || queue.paused) return answer
    answer.limited = queue.running !== null || queue.rate !== null || queue.groupRate !== null
    queue.full = counted(queue.rate, queue, this.now)
    let wait = this.#startableIn(queue, 1)
    let turn = { group: '', left: 0 }
    if (wait === 0) for (const group of this.#groups(queue)) this.#place(queue, group)
    while (wait === 0 && answer.jobs.length < limit) {
      const goesOn = turn.left > 0 ? this.#group(queue, turn.group) : undefined
      const job = goesOn === undefined ? this.#next(queue, minPriority) : this.#line(queue, goesOn)[0]
      if (job === undefined) break
      wait = this.#startableIn(queue, job.cost ?? 1)
      if (wait === 0) {
        this.#start(queue, job, goesOn !== undefined)
        Object.assign(job, { state: 'running', fence: job.fence + 1, attempt: job.attempt + 1, startedAt: this.now })
        Object.assign(job, { worker, leaseUntil: this.now + lease })
        if (queue.grouped) {
          const own = this.#group(queue, job.group ?? '')
          this.#place(queue, own)
          const left = (goesOn === undefined ? perGroup : turn.left) - 1
          turn = { group: own.group, left: own.ticket === job.priority ? left : 0 }
        }
        answer.jobs.push(claimOf(job))
      }
    }
    if (answer.jobs.length === limit) return answer
    const timed = this.list(name, 'scheduled').filter(({ follows }) => !follows)
    const due = timed.map((job) => Math.max(0, job.dueAt - this.now))
    const held = wait === 0 ? this.#groups(queue).map((group) => this.#groupStartableIn(queue, group)) : [wait]
    const times = [...due, ...held.filter((time) => time !== null && time > 0)].filter((time) => time !== null)
    if (times.length > 0) answer.retryAfter = Math.min(...times)
    return answer
  }

  /** The job that a claim starts next. */
  #next(queue: ModelQueue, minPriority: number): ModelJob | undefined {
    const jobs = this.list(queue.queue, 'waiting').filter(({ priority }) => priority >= minPriority)
    if (!queue.grouped) return jobs[0]
    const turn = (group: ModelGroup) => group.virtual[group.ticket] ?? 0
    const place = (group: ModelGroup) => this.jobs.indexOf(this.#line(queue, group)[0] as ModelJob)
    const [group] = queue.groups
      .filter(({ ticket }) => ticket >= minPriority)
      .sort((a, b) => b.ticket - a.ticket || turn(a) - turn(b) || place(a) - place(b))
    return group === undefined ? undefined : this.#line(queue, group)[0]
  }

  #start(queue: ModelQueue, { group, priority, cost = 1 }: ModelJob, goesOn: boolean): void {
    const start = (rate: Rate | null, of: Rated) => {
      if (rate !== null)
        Object.assign(of, { full: Math.max(of.full, this.now * 1000) + cost * step(rate), fullCost: cost })
    }
    start(queue.rate, queue)
    if (!queue.grouped) return
    const own = this.#group(queue, group ?? '')
    const turn = own.virtual[priority] ?? 0
    if (!goesOn) queue.virtual[priority] = Math.max(queue.virtual[priority] ?? 0, turn)
    own.startedAt = this.now
    own.virtual[priority] = turn + cost / (own.limits?.weight ?? 1)
    start(this.#rate(queue, own), own)
  }

  #place(queue: ModelQueue, group: ModelGroup): void {
    const had = group.ticket
    const first = this.#line(queue, group)[0]
    if (first !== undefined) group.full = counted(this.#rate(queue, group), group, this.now)
    group.ticket = first !== undefined && this.#groupStartableIn(queue, group) === 0 ? first.priority : -1
    const { ticket, virtual } = group
    if (ticket >= 0 && ticket !== had) virtual[ticket] = Math.max(virtual[ticket] ?? 0, queue.virtual[ticket] ?? 0)
  }

  /** null: as many jobs run as may. */
  #startableIn(queue: ModelQueue, cost: number): number | null {
    const { running, rate, pausedUntil } = queue
    if (running !== null && this.in(queue.queue, 'running').length >= running) return null
    const rated = rate === null ? 0 : waitFor(rate, queue, this.now, cost)
    return Math.max(0, pausedUntil - this.now, rated)
  }

  /** null: as many jobs run as may, or none waits. */
  #groupStartableIn(queue: ModelQueue, group: ModelGroup): number | null {
    const first = this.#line(queue, group)[0]
    const most = group.limits?.running ?? (group.group === '' ? null : queue.groupRunning)
    const running = this.in(queue.queue, 'running').filter((job) => (job.group ?? '') === group.group).length
    if (first === undefined || (most !== null && running >= most)) return null
    const rate = this.#rate(queue, group)
    const rated = rate === null ? 0 : waitFor(rate, group, this.now, first.cost ?? 1)
    return Math.max(0, group.pausedUntil - this.now, rated)
  }

  #rate(queue: ModelQueue, { group, limits }: ModelGroup): Rate | null {
    return limits?.rate ?? (group === '' ? null : queue.groupRate)
  }

  /** The waiting jobs of a group. */
  #line(queue: ModelQueue, { group }: ModelGroup): ModelJob[] {
    return this.list(queue.queue, 'waiting').filter((job) => (job.group ?? '') === group)
  }

  #group(queue: ModelQueue, group: string): ModelGroup {
    let known = queue.groups.find((one) => one.group === group)
    if (known === undefined) {
      const virtual = new Array<number>(10).fill(0)
      known = { group, limits: null, virtual, full: 0, fullCost: 1, pausedUntil: 0, startedAt: 0, ticket: -1 }
      queue.groups.push(known)
    }
    return known
  }

  /** All that have jobs, or had some. */
  #groups(queue: ModelQueue): ModelGroup[] {
    if (!queue.grouped) return []
    for (const job of this.jobs) if (job.queue === queue.queue && live(job)) this.#group(queue, job.group ?? '')
    return queue.groups
  }

  groups(name: string): GroupRecord[] {
    const queue = this.queues.get(name)
    if (queue === undefined) return []
    const records = this.#groups(queue).map((group) => ({
      group: group.group,
      limits: group.limits,
      waiting: this.#line(queue, group).length,
      running: this.in(name, 'running').filter((job) => (job.group ?? '') === group.group).length,
      nextStart: this.#groupStartableIn(queue, group),
    }))
    return records
      .filter(({ waiting, running, limits }) => waiting > 0 || running > 0 || limits !== null)
      .sort((a, b) => (a.group < b.group ? -1 : 1))
  }

  #limits(queue: ModelQueue): HeldBack & { limits: LimitSettings | null } {
    const { running, rate, grouped, groupRunning, groupRate } = queue
    const none = running === null && rate === null && !grouped
    const waits = this.groups(queue.queue).filter(({ waiting }) => waiting > 0)
    return {
      limits: none ? null : { running, rate, grouped, groupRunning, groupRate },
      nextStart: this.#startableIn(queue, 1),
      groupsAtLimit: waits.filter(({ nextStart }) => nextStart === null).length,
      groupsHeld: waits.filter(({ nextStart }) => nextStart !== null && nextStart > 0).length,
    }
  }

  complete(queue: string, completions: readonly Completion[]): HoldOutcome[] {
    return completions.map((completion) => {
      const job = this.held(queue, completion)
      if (!job) return 'stale'
      job.result = completion.result
      this.finish(job, 'done')
      return 'ok'
    })
  }

  fail(queue: string, failures: readonly Failure[]): FailOutcome[] {
    return failures.map((failure) => {
      const job = this.held(queue, failure)
      if (!job) return 'stale'
      job.error = failure.error
      this.total(queue, 'failed')
      if (failure.delay === null || job.attempt >= job.attempts) {
        this.finish(job, 'dead')
        return 'dead'
      }
      const delay =
        failure.delay === 'backoff' ? backoffAfter(this.queue(job.queue).backoff, job.attempt) : failure.delay
      job.state = delay === 0 ? 'waiting' : 'scheduled'
      job.dueAt = this.now + delay
      return 'retry'
    })
  }

  release(name: string, releases: readonly Release[]): HoldOutcome[] {
    return releases.map((given) => {
      const job = this.held(name, given)
      if (!job) return 'stale'
      const queue = this.queue(name)
      const group = queue.grouped ? this.#group(queue, job.group ?? '') : null
      if (given.pause) {
        const paused = job.group === null ? queue : (group ?? queue)
        paused.pausedUntil = Math.max(paused.pausedUntil, this.now + given.pause)
      } else {
        queue.full = counted(queue.rate, queue, this.now) - givenBack(queue.rate, job, this.now)
        if (group !== null) {
          const rate = this.#rate(queue, group)
          group.full = counted(rate, group, this.now) - givenBack(rate, job, this.now)
        }
      }
      Object.assign(job, { state: 'waiting', attempt: job.attempt - 1, startedAt: null, worker: null })
      this.total(name, 'released')
      return 'ok'
    })
  }

  extend(queue: string, asked: number | null, extensions: readonly Extension[]): ExtendOutcome[] {
    const lease = asked ?? this.queues.get(queue)?.lease ?? DEFAULTS.lease
    return extensions.map((extension) => {
      const job = this.held(queue, extension)
      if (job) {
        job.leaseUntil = Math.max(job.leaseUntil, this.now + lease)
        job.progress = extension.progress ?? job.progress
        return 'ok'
      }
      const known = this.job(extension.id)
      const cancelled = known?.state === 'cancelled' && known.fence === extension.fence && known.queue === queue
      return cancelled ? 'cancelled' : 'stale'
    })
  }

  cancel(ids: readonly string[]): (FinalState | null)[] {
    return ids.map((id) => {
      const job = this.job(id)
      if (!job) return null
      if (live(job)) this.finish(job, 'cancelled')
      return job.state === 'done' || job.state === 'dead' ? job.state : 'cancelled'
    })
  }

  /** All that there is to do, without a limit. */
  sweep(): Omit<Swept, 'more' | 'queues' | 'schedules'> {
    let promoted = this.#promote()
    const lost = this.jobs.filter((job) => job.state === 'running' && job.leaseUntil <= this.now)
    const told: Swept['lost'] = lost.map((job) => {
      const state = job.attempt >= job.attempts ? 'dead' : 'waiting'
      this.total(job.queue, 'lost')
      if (state === 'dead') {
        job.error = { code: 'LeaseLost', name: '', message: '' }
        this.finish(job, 'dead')
      } else {
        job.state = 'waiting'
        job.dueAt = this.now
      }
      return { id: job.id, queue: job.queue, attempt: job.attempt, state }
    })
    this.settle()
    promoted += this.#promote() // followers of the dead
    const expired = this.jobs.filter((job) => {
      return job.finishedAt !== null && !job.isKept && job.finishedAt + this.keep(job.queue, job.state) <= this.now
    })
    for (const job of expired) job.isKept = job.state === 'done' && this.graph.hasLiveChild(job.id)
    this.jobs = this.jobs.filter((job) => !expired.includes(job) || job.isKept)
    const timed = this.jobs.filter((job) => job.state === 'scheduled' && !job.follows)
    const due = timed.map((job) => job.dueAt - this.now)
    const nextDue = due.length === 0 ? null : Math.min(...due)
    return { lost: told, promoted, expired: expired.length, nextDue }
  }

  #promote(): number {
    const due = this.jobs.filter((job) => job.state === 'scheduled' && !job.follows && job.dueAt <= this.now)
    for (const job of due) job.state = 'waiting'
    return due.length
  }

  find(ids: readonly string[]): (JobRecord | null)[] {
    return ids.map((id) => recordOf(this.job(id)))
  }

  list(queue: string, state: JobState): ModelJob[] {
    return inOrder(state, this.in(queue, state))
  }

  requeue(request: RequeueRequest): Requeued {
    const jobs = 'ids' in request ? request.ids.map((id) => this.job(id)) : this.list(request.queue, 'dead').reverse()
    const back: ModelJob[] = []
    for (const job of jobs) {
      if ('limit' in request && back.length === request.limit) break
      if (!job || (job.state !== 'dead' && job.state !== 'cancelled') || this.liveWithKey(job.queue, job.key)) continue
      const renewed = { state: 'waiting', attempt: 0, dueAt: this.now, startedAt: null, finishedAt: null, worker: null }
      Object.assign(job, renewed)
      this.keys.take(job)
      back.push(job)
    }
    for (const job of back) this.graph.reopen(job, (id) => this.job(id))
    return { requeued: back.length, now: this.now }
  }

  update(items: readonly JobUpdate[]): UpdateOutcome[] {
    return items.map(({ id, data, priority, delay, runAt }) => {
      const job = this.job(id)
      if (!job) return null
      if (job.state !== 'blocked' && job.state !== 'scheduled' && job.state !== 'waiting') return job.state
      Object.assign(job, { data: data ?? job.data, priority: priority ?? job.priority })
      if (delay === undefined && runAt === undefined) return 'updated'
      job.dueAt = Math.max(this.now, runAt ?? this.now + (delay ?? 0))
      if (!job.follows && job.state !== 'blocked') job.state = job.dueAt > this.now ? 'scheduled' : 'waiting'
      return 'updated'
    })
  }

  /** @returns how many there were */
  remove(ids: readonly string[]): number {
    const gone = this.jobs.filter(({ id }) => ids.includes(id))
    this.removed ||= gone.length > 0
    this.jobs = this.jobs.filter((job) => !gone.includes(job))
    for (const job of gone) {
      if (live(job)) {
        this.keys.leave(job, this.jobs, false, this.now)
        this.graph.ended.push({ id: job.id, isDone: false })
        this.graph.free(job)
      } else this.keys.forget(job)
    }
    return gone.length
  }

  restore(records: readonly JobRecord[]): RestoreOutcome[] {
    return records.map((record) => {
      this.queue(record.queue)
      const isLive = live({ ...record, leaseUntil: 0 })
      const taken = isLive ? this.liveWithKey(record.queue, record.key) : undefined
      const follows = taken && record.state === 'scheduled' && record.follows && !followerOf(this.jobs, record)
      if (this.job(record.id) ?? (follows ? undefined : taken)) return 'existing'
      const { follows: _, waitsFor: __, onDead = 'cancel', after = [], ...restored } = record
      const job: ModelJob = { ...restored, ...(follows && { follows }), leaseUntil: 0 }
      const isBlocked = job.state === 'blocked'
      const isFailed = isBlocked && this.graph.wait(job, after, onDead, (id) => this.job(id))
      if (isBlocked && job.waitsFor === undefined && !isFailed) this.letGo(job)
      this.jobs.push(job)
      if (isFailed) this.cancelFor(job)
      if (!isLive) this.graph.ended.push({ id: job.id, isDone: job.state === 'done' })
      const { finishedAt, key, queue, state } = record
      if (isLive && !follows && key !== null) this.keys.take(record)
      if (finishedAt !== null && state !== 'cancelled' && !this.liveWithKey(queue, key)) {
        this.keys.remember(record, finishedAt, this.now)
      }
      return 'restored'
    })
  }

  removeQueue(name: string): void {
    this.removed = true
    const gone = this.jobs.filter(({ queue }) => queue === name)
    this.jobs = this.jobs.filter(({ queue }) => queue !== name)
    for (const job of gone) this.graph.free(job)
    for (const job of gone.filter(live)) this.graph.ended.push({ id: job.id, isDone: false })
    this.queues.delete(name)
    this.#histograms.remove(name)
    this.keys.forgetQueue(name)
  }

  record(slices: readonly HistogramSlice[]): void {
    this.#histograms.record(slices, this.now)
  }

  stats(minutes: number): ModelStats[] {
    return [...this.queues.values()].map((settings) => {
      const { queue, paused, capacity } = settings
      const count = (state: JobState) => this.in(queue, state).length
      const due = this.in(queue, 'waiting').map((job) => job.dueAt)
      return {
        queue,
        paused,
        capacity,
        counts: countsOf(count),
        totals: { ...settings.totals },
        oldestWaiting: due.length === 0 ? null : this.now - Math.min(...due),
        ...this.#limits(settings),
        histograms: this.#histograms.merged(queue, minutes, this.now),
      }
    })
  }
}
