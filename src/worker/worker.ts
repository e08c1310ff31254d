/**
 * A worker claims jobs of one queue and runs them through a handler. This file reads in the order in which that happens. The states of a
 * claimed job are in `attempt.ts`.
 *
 *   claim ──► arrived: buffered ──slot free──► started: handler ──► ended ──► ending sent ──► answered
 *                         └─ window over: given back                            ▲
 *                                          └────────────────────────────────────┘
 *
 * Claims and endings are planned for the end of the tick, so that they share a round trip. `claim-loop.ts` decides when to claim,
 * `starter.ts` and its slots what to start, a runner how an attempt ends.
 */

import { atEndOfTick } from '../batch/batcher.ts'
import { splitting } from '../batch/splitting.ts'
import type { Store } from '../store.ts'
import { LinkedList } from '../values/collections/linked-list.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { HistogramRecorder, type HistogramSlice } from '../values/figures/histogram.ts'
import type { PondEmitter } from '../values/jobs/events.ts'
import { newId } from '../values/jobs/ids.ts'
import { parentsOf } from '../values/jobs/parent-jobs.ts'
import type { Claimed, Encoded } from '../values/jobs/records.ts'
import { needs } from '../values/operations/capabilities.ts'
import type { Lane } from '../values/operations/requests.ts'
import { type CloseOptions, type CloseReport, closeTimeout } from '../values/options/close-options.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { within } from '../values/time/within.ts'
import { type Arrival, Attempt } from './attempt.ts'
import { attemptEvents } from './attempt-events.ts'
import type { BatchHandler } from './batch-context.ts'
import { batchRunner } from './batch-runner.ts'
import { type BatchSettings, batchSlots } from './batch-slots.ts'
import { ClaimLoop } from './claim-loop.ts'
import { type Ending, released, type Untold } from './ending.ts'
import { EndingBatches, type EndingOutcome } from './ending-batches.ts'
import type { Isolated } from './isolated/index.ts'
import { JobBuffer } from './job-buffer.ts'
import type { Lanes } from './lanes.ts'
import { LateJobs } from './late-jobs.ts'
import { Leases } from './leases.ts'
import { Prefetch } from './prefetch.ts'
import type { Replica } from './replica.ts'
import { type RunnerSettings, runnerTools } from './runner.ts'
import { type Handler, singleRunner } from './single-runner.ts'
import { singleSlots } from './single-slots.ts'
import { type Slots, Starter, type Wanted } from './starter.ts'
import { JournalCalls } from './steps/journal-calls.ts'

/** Everything a worker needs, checked and in milliseconds. */
export interface WorkerSettings extends RunnerSettings {
  concurrency: number
  window: number
  replica?: Replica | undefined
  /** With them nothing is claimed ahead. Not with `batch`. */
  lanes?: Lanes | undefined
  /** Set if the handler is in processes of its own. */
  isolated?: Isolated | undefined
  /** Set if the handler is one for batches. Then `concurrency` counts batches, and nothing is claimed ahead. */
  batch?: BatchSettings | undefined
}

/** A missed bell delays a job by this much at the most, in milliseconds. */
const POLL = DEFAULTS.worker.poll
const NONE_WANTED: Wanted = { limit: 0, minPriority: 0 }

/** Who a worker belongs to. */
export interface WorkerOwner {
  removeWorker(worker: Worker): void
  /** The store has the completion. */
  completed(id: string, result: Encoded | null): void
  /** A job of some queue is due in so many milliseconds, by the store's word. */
  due(ms: number): void
}

export class Worker implements AsyncDisposable {
  /** A UUID; shown as `worker` of the jobs it runs. */
  readonly id = newId()
  readonly #settings: WorkerSettings
  readonly #store: Store
  readonly #owner: WorkerOwner
  readonly #ready: () => Promise<void> | undefined
  readonly #emitter: PondEmitter
  readonly #events: ReturnType<typeof attemptEvents>
  readonly #recorder: HistogramRecorder
  readonly #claims: ClaimLoop
  readonly #buffer: JobBuffer
  readonly #late = new LateJobs()
  readonly #prefetch: Prefetch
  readonly #slots: Slots
  readonly #starter: Starter
  /** In the order of their start. */
  readonly #running = new LinkedList<Attempt>()
  readonly #leases: Leases
  readonly #journals: JournalCalls
  readonly #endings: EndingBatches
  /** How many bells told of cancelled jobs: one that rings during a claim may have overtaken the claim's answer. */
  #cancelBells = 0
  #cancelBellsAtClaim = 0
  #isPlanned = false
  /** Not unref'd: an open worker keeps its process alive. */
  readonly #pollTimer: NodeJS.Timeout
  #closing: Promise<CloseReport> | undefined
  #whenQuiet: (() => void) | undefined
  /** Of `performance.now()`. */
  #closedAt = Number.POSITIVE_INFINITY
  /** How many attempts ended while closing. */
  #finished = 0
  /** Ids of jobs given back while closing. The last claim may bring one again, which must not count twice. */
  readonly #givenBack = new Set<string>()

  /** @internal */
  constructor(
    store: Store,
    settings: WorkerSettings,
    handler: Handler | BatchHandler,
    emitter: PondEmitter,
    ready: () => Promise<void> | undefined,
    owner: WorkerOwner,
  ) {
    const { queue, window } = settings
    const trouble = (error: MillpondError) => emitter.trouble(error)
    this.#store = store
    this.#settings = settings
    this.#owner = owner
    this.#ready = ready
    this.#emitter = emitter
    this.#events = attemptEvents(queue, emitter)
    this.#recorder = new HistogramRecorder(queue)
    this.#claims = new ClaimLoop({
      wanted: () => (this.#late.areBack ? this.#slots.wanted() : NONE_WANTED),
      busy: () => this.#running.size + this.#buffer.size > 0,
      claim: (wanted) => this.#claim(wanted),
      arrived: (claimed, sentAt) => this.#jobsArrived(claimed, sentAt),
      trouble: (error) => this.#claimFailed(error),
    })
    const start = () => this.#starter.startInNewTick()
    this.#buffer = new JobBuffer(window, start, (late) => this.#giveBackInOrder(late))
    this.#prefetch = new Prefetch(window)
    this.#slots = this.#slotsFor(handler)
    this.#journals = new JournalCalls(store, queue, {
      lost: (attempt, reason) => this.#claimLost(attempt, reason),
      trouble,
    })
    this.#starter = new Starter(this.#slots, () => this.#planFlushAndClaim())
    this.#leases = new Leases(store, queue, {
      held: () => [...this.#buffer, ...this.#running, ...this.#endings.attempts],
      lost: (attempt, reason) => this.#claimLost(attempt, reason),
      trouble,
    })
    this.#endings = new EndingBatches(store, queue, (ending, outcome) => this.#endingAnswered(ending, outcome), trouble)
    this.#pollTimer = setInterval(() => this.#poll(), POLL)
    this.#planFlushAndClaim()
  }

  get queue(): string {
    return this.#settings.queue
  }

  /** How many handlers run now, of how many at most, and how many jobs are claimed for the next ones. */
  get load(): { running: number; buffered: number; slots: number } {
    return { running: this.#slots.taken, buffered: this.#buffer.size, slots: this.#settings.concurrency }
  }

  /** @internal The slots that it keeps for urgent jobs, the highest priority first; null: none. */
  get lanes(): readonly Lane[] | null {
    return this.#settings.lanes?.all ?? null
  }

  /** @internal The attempts that have a slot. */
  get attempts(): Iterable<Attempt> {
    return this.#running
  }

  /**
   * Stops claiming, gives back what is not started, waits for what runs. After `timeout` (30 s unless given) running handlers get
   * their signal aborted, and their jobs are given back as well. Resolves when the store knows all of it.
   * @throws InvalidOption
   */
  async close(options: CloseOptions = {}): Promise<CloseReport> {
    const timeout = closeTimeout(options)
    this.#closing ??= this.#close(timeout)
    return this.#closing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** @internal There may be work. */
  wake(): void {
    this.#claims.wake()
    this.#planFlushAndClaim()
  }

  /**
   * @internal Jobs are on their way to the store. An idle worker's claim goes right behind them, so that both share a round trip
   * and a commit, instead of waiting for the bell that the push will ring.
   */
  expect(): void {
    if (!this.#claims.idle) return
    this.#claims.wake()
    this.#claims.claim()
  }

  /** @internal These jobs, or any of the queue, may have been cancelled. */
  checkCancelled(ids: readonly string[] | undefined): void {
    const concerned = [...this.#buffer, ...this.#running].filter(({ claimed }) => ids?.includes(claimed.id) ?? true)
    void this.#leases.extend(concerned)
    this.#cancelBells++
  }

  #slotsFor(handler: Handler | BatchHandler): Slots {
    const { concurrency, window, batch, maxPayload } = this.#settings
    const terms = {
      maxPayload,
      reportSoon: () => this.#leases.reportSoon(),
      logSoon: () => this.#leases.logSoon(),
      assertRates: () => needs(this.#store, 'rates', 'ctx.rateLimited'),
      parents: (id: string) => parentsOf(this.#store, id),
      steps: (attempt: Attempt) => {
        needs(this.#store, 'steps', 'a step')
        return this.#journals.of(attempt)
      },
    }
    const tools = runnerTools(this.#store, this.#settings, terms, this.#emitter, (endings) =>
      this.#attemptsEnded(endings),
    )
    const begin = (attempt: Attempt, now: number) => this.#startAttempt(attempt, now)
    const host = { count: concurrency, buffer: this.#buffer, running: this.#running, begin }
    if (batch === undefined) return singleSlots(host, () => this.#wanted(), singleRunner(tools, handler as Handler))
    const claiming = () => this.#claims.underWay
    const ripe = () => {
      this.#starter.startInNewTick()
      this.#planFlushAndClaim()
    }
    return batchSlots({ ...host, window, claiming, ripe }, batch, batchRunner(tools, handler as BatchHandler))
  }

  #poll(): void {
    this.wake()
    void this.#sendFigures()
  }

  /**
   * Endings and a claim go out together: at the end of the tick when nothing else runs here, else after the sockets and timers
   * that are ready now were served, since what they finish can go along.
   */
  #planFlushAndClaim(): void {
    if (this.#isPlanned) return
    this.#isPlanned = true
    if (this.#running.size === 0) atEndOfTick(this.#flushAndClaim)
    else setImmediate(this.#flushAndClaim)
  }

  readonly #flushAndClaim = (): void => {
    this.#isPlanned = false
    this.#endings.flush()
    this.#claims.claim()
  }

  #wanted(): Wanted {
    const { concurrency, lanes } = this.#settings
    if (lanes !== undefined) return lanes.wanted([...this.#running, ...this.#buffer])
    return { limit: this.#prefetch.wanted(concurrency, this.#running, this.#buffer.size), minPriority: 0 }
  }

  async #claim({ limit, minPriority }: Wanted): Promise<{ claimed: Claimed; sentAt: number }> {
    this.#cancelBellsAtClaim = this.#cancelBells
    const ready = this.#ready()
    if (ready !== undefined) await ready
    const sentAt = performance.now()
    const { perGroup } = this.#slots
    const request = { queue: this.queue, worker: this.id, limit, minPriority, perGroup, lease: null }
    const claimed = await this.#store.operations.claim(request)
    return { claimed, sentAt }
  }

  #claimFailed(error: MillpondError): void {
    if (!this.#claims.closed) this.#emitter.trouble(error)
    this.#resumeClose()
    // A batch may have waited for what this claim would bring.
    this.#starter.start(performance.now())
  }

  #jobsArrived({ now, lease, jobs, retryAfter, limited }: Claimed, sentAt: number): void {
    this.#prefetch.limited = limited
    if (retryAfter !== null) this.#owner.due(retryAfter)
    if (jobs.length > 0) this.#leases.lasting(lease)
    const arrival: Arrival = { now, at: performance.now(), heldUntil: sentAt + lease }
    const attempts = jobs.map((job) => new Attempt(job, arrival))
    if (this.#claims.closed) {
      this.#giveBack([...this.#buffer.clear(), ...attempts])
      this.#resumeClose()
      return
    }
    if (this.#late.areBehind(sentAt)) this.#giveBackInOrder(attempts)
    else this.#buffer.add(attempts)
    // The next claim goes out before these handlers start, so that the store works while they do.
    this.#claims.claim()
    this.#starter.startInNewTick()
    this.#buffer.watch()
    if (this.#cancelBells !== this.#cancelBellsAtClaim) void this.#leases.extend(attempts)
  }

  /** The attempt gets a slot. @returns false: it was given back */
  #startAttempt(attempt: Attempt, now: number): boolean {
    // This process was stopped, or its event loop held up, for longer than the lease: another worker may have the job by now.
    if (now > attempt.heldUntil) {
      this.#sendEnding(released(attempt))
      return false
    }
    attempt.start(now)
    this.#running.append(attempt)
    this.#recorder.add(attempt.claimed.priority, 'wait', attempt.wait)
    this.#events.started(attempt)
    return true
  }

  #attemptsEnded(endings: readonly Ending[]): void {
    const now = performance.now()
    for (const ending of endings) {
      this.#freeSlot(ending.attempt, now)
      if (ending.kind === 'committed') this.#endingAnswered(ending, ending.outcome)
      else this.#sendEnding(ending)
    }
    this.#starter.start(now)
    this.#planFlushAndClaim()
  }

  /** Its slot is free. */
  #freeSlot(attempt: Attempt, now: number): void {
    attempt.endedAt = now
    if (attempt.list !== this.#running) return
    this.#running.remove(attempt)
    attempt.batch?.left(attempt)
    this.#prefetch.ran(attempt.run)
    this.#recorder.add(attempt.claimed.priority, 'run', attempt.run)
  }

  #giveBack(attempts: Attempt[]): void {
    for (const attempt of attempts) this.#sendEnding(released(attempt))
  }

  #giveBackInOrder(attempts: Attempt[]): void {
    if (attempts.length > 0) this.#emitter.emit('released', { queue: this.queue, count: attempts.length })
    this.#late.leave(attempts)
    this.#giveBack(attempts)
  }

  #sendEnding(ending: Untold): void {
    ending.attempt.end()
    this.#endings.add(ending)
    if (ending.kind === 'release' && ending.park === undefined && this.#claims.closed) this.#givenBack.add(ending.id)
    this.#planFlushAndClaim()
  }

  #endingAnswered(ending: Ending, outcome: EndingOutcome): void {
    const isLate = ending.kind !== 'release' && ending.attempt.endedAt >= this.#closedAt
    if (isLate && outcome !== 'stale') this.#finished++
    if (ending.kind === 'complete' && outcome !== 'stale') this.#owner.completed(ending.id, ending.result)
    this.#events.ended(ending, outcome)
    if (this.#late.back(ending.attempt)) this.#planFlushAndClaim()
    this.#resumeClose()
  }

  #claimLost(attempt: Attempt, reason: MillpondError): void {
    // An ending attempt gets its answer from the store; this may be no more than an echo of it.
    if (!attempt.isOpen) return
    attempt.stop(reason)
    const now = performance.now()
    if (attempt.list === this.#running) {
      this.#freeSlot(attempt, now)
      this.#events.stale(attempt)
    } else if (attempt.list === this.#buffer) this.#buffer.remove(attempt)
    this.#resumeClose()
    this.#starter.start(now)
    this.#planFlushAndClaim()
  }

  async #close(timeout: number): Promise<CloseReport> {
    this.#closedAt = performance.now()
    const until = this.#closedAt + timeout
    this.#claims.close()
    this.#settings.isolated?.closing()
    this.#buffer.close()
    this.#slots.close()
    this.#giveBack(this.#buffer.clear())
    for (const attempt of [...this.#running]) if (attempt.state === 'awaitingReplica') this.#stopAndRelease(attempt)
    if (this.#running.size > 0 || this.#claims.underWay) {
      const quiet = new Promise<void>((resolve) => {
        this.#whenQuiet = resolve
      })
      await within(timeout, quiet)
    }
    // A claim that is not answered: endings were sent beside it all the while.
    const isUnanswered = this.#running.size === 0 && this.#claims.underWay
    for (const attempt of [...this.#running]) this.#stopAndRelease(attempt)
    // A store that is gone must not keep a process from ending; its leases will run out.
    const left = Math.ceil(Math.max(until - performance.now(), isUnanswered ? 0 : DEFAULTS.worker.closeWait))
    const told = this.#endings.flushed()
    let untold: Attempt[] = []
    const patience = setTimeout(() => {
      untold = this.#endings.attempts
      this.#endings.abandon()
    }, left)
    await Promise.all([told, within(left, this.#sendFigures())])
    clearTimeout(patience)
    clearInterval(this.#pollTimer)
    this.#leases.close()
    await this.#settings.replica?.close()
    await this.#settings.isolated?.close()
    this.#owner.removeWorker(this)
    for (const { claimed } of untold) this.#givenBack.delete(claimed.id)
    const report = { finished: this.#finished, givenBack: this.#givenBack.size }
    return untold.length === 0 ? report : { ...report, untold: untold.length }
  }

  /** It is given back, whatever its handler still does. */
  #stopAndRelease(attempt: Attempt): void {
    const { id } = attempt.claimed
    attempt.stop(new MillpondError('Closed', `the worker closed while job ${id} ran; it was given back`, { id }))
    this.#running.remove(attempt)
    attempt.batch?.left(attempt)
    this.#sendEnding(released(attempt))
  }

  /** Resumes a `#close` that waits for the last handler, if no handler and no claim is left. */
  #resumeClose(): void {
    if (this.#running.size === 0 && !this.#claims.underWay) this.#whenQuiet?.()
  }

  /** Never rejects: only figures for people are lost, and the claims and endings around them tell of the store's trouble. */
  async #sendFigures(): Promise<void> {
    const slices = this.#recorder.take()
    if (slices.length > 0) await splitting(slices, (some) => recorded(this.#store, some), 'recording figures')
  }
}

const recorded = async (store: Store, slices: readonly HistogramSlice[]): Promise<undefined[]> => {
  await store.operations.record({ slices })
  return slices.map(() => undefined)
}
