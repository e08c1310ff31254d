/**
 * A worker claims jobs of one queue and runs them through a handler.
 *
 * A claimed job is in one of these states here; in all of them it is held, that is, its lease is extended:
 *
 *   buffered ──slot free──► running ──handler ends──► ending ──store told──► let go
 *      │                      │
 *      │                      └─ lease lost or cancelled: let go at once, signal aborted; timeout: ending as failed
 *      └─ window over: ending as released
 *
 * With a batch handler, a slot is for a batch: `batches.ts` puts buffered jobs together. Each of them ends by itself; the
 * slot is free when the last one runs no more.
 *
 * Claims and endings are planned for the end of the turn, so that they share a round trip. When to claim is for `claim-loop.ts`.
 */

import { atEndOfTurn } from '../batch/batcher.ts'
import { type CloseOptions, type CloseReport, closeTimeout, within } from '../pond/close-options.ts'
import type { PondEmitter } from '../pond/events.ts'
import type { Claimed, Encoded, FailOutcome, HoldOutcome, Store } from '../store.ts'
import { needs } from '../values/capabilities.ts'
import { DEFAULTS } from '../values/contract-defaults.ts'
import { MillpondError } from '../values/errors.ts'
import { HistogramRecorder } from '../values/histogram.ts'
import { newId } from '../values/ids.ts'
import { LinkedList } from '../values/linked-list.ts'
import { type Arrival, Attempt, type AttemptTerms } from './attempt.ts'
import type { BatchHandler } from './batch-context.ts'
import { BatchRunner } from './batch-runner.ts'
import { Batches, type BatchSettings } from './batches.ts'
import { ClaimLoop, type Wanted } from './claim-loop.ts'
import { type Committed, type Ending, released } from './ending-batches.ts'
import { EndingParts } from './ending-parts.ts'
import { JobBuffer } from './job-buffer.ts'
import type { Lanes } from './lanes.ts'
import { Leases } from './leases.ts'
import { Prefetch } from './prefetch.ts'
import { type Handler, Runner } from './runner.ts'
import type { RunnerSettings } from './runner-base.ts'

/** Everything a worker needs, checked and in milliseconds. */
export interface WorkerSettings extends RunnerSettings {
  concurrency: number
  window: number
  /** With them nothing is claimed ahead. Not with `batch`. */
  lanes?: Lanes | undefined
  /** Set if the handler is one for batches. Then `concurrency` counts batches, and nothing is claimed ahead. */
  batch?: BatchSettings | undefined
}

/** A missed bell delays a job by this much at the most, in milliseconds. */
const POLL = DEFAULTS.worker.poll
/** Handlers are started for this long without a break, in milliseconds, before timers and sockets get their turn. */
const MAX_TURN = 5

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
  readonly #runner: Runner
  /** Set if the handler is one for batches; then the runner of single jobs has nothing to do. */
  readonly #batches: Batches | undefined
  readonly #events: PondEmitter
  readonly #ready: () => Promise<void> | undefined
  readonly #claims: ClaimLoop
  readonly #owner: WorkerOwner
  readonly #prefetch: Prefetch
  readonly #recorder: HistogramRecorder
  readonly #endings: EndingParts
  readonly #leases: Leases
  /** In the order of their start. */
  readonly #running = new LinkedList<Attempt>()
  readonly #buffer: JobBuffer
  readonly #terms: AttemptTerms
  /** How many bells told of cancelled jobs: one that rings during a claim may have overtaken the claim's answer. */
  #cancelBells = 0
  #cancelBellsAtClaim = 0
  #planned = false
  #yield: NodeJS.Immediate | undefined
  /** When this process last gave way to timers and sockets, as far as we know. */
  #turnBegan = performance.now()
  /** Not unref'd: an open worker keeps its process alive. */
  readonly #ticker: NodeJS.Timeout
  #closing: Promise<CloseReport> | undefined
  #onQuiet: (() => void) | undefined
  /** Of `performance.now()`. */
  #closedAt = Number.POSITIVE_INFINITY
  #finished = 0
  /** Ids: a claim that was on its way may bring back what was given back already. */
  readonly #givenBack = new Set<string>()

  /** @internal */
  constructor(
    store: Store,
    settings: WorkerSettings,
    handler: Handler | BatchHandler,
    events: PondEmitter,
    ready: () => Promise<void> | undefined,
    owner: WorkerOwner,
  ) {
    this.#store = store
    this.#settings = settings
    const trouble = (error: MillpondError) => events.trouble(error)
    const ended = (endings: readonly (Ending | Committed)[]) => this.#ended(endings)
    this.#runner = new Runner(store, settings, handler as Handler, ended, events)
    if (settings.batch !== undefined) {
      const runner = new BatchRunner(store, settings, handler as BatchHandler, ended, events)
      this.#batches = new Batches(settings.batch, settings.concurrency, settings.window, runner, () => this.#goOn())
    }
    this.#events = events
    this.#ready = ready
    this.#owner = owner
    this.#prefetch = new Prefetch(settings.window)
    this.#buffer = new JobBuffer(settings.window, (late) => {
      this.#events.emit('released', { queue: this.queue, count: late.length })
      this.#giveBack(late)
    })
    this.#recorder = new HistogramRecorder(settings.queue)
    const settled = (ending: Ending, outcome: HoldOutcome | FailOutcome) => this.#settled(ending, outcome)
    this.#endings = new EndingParts(store, settings.queue, settled, trouble)
    this.#leases = new Leases(store, settings.queue, {
      held: () => [...this.#buffer, ...this.#running, ...this.#endings.attempts],
      lost: (attempt, reason) => this.#lost(attempt, reason),
      trouble,
    })
    this.#terms = {
      maxPayload: settings.maxPayload,
      reportSoon: () => this.#leases.reportSoon(),
      assertRates: () => needs(store, 'rates', 'ctx.rateLimited'),
    }
    this.#claims = new ClaimLoop({
      wanted: () => this.#wanted(),
      busy: () => this.#running.size + this.#buffer.size > 0,
      claim: (wanted) => this.#claim(wanted),
      arrived: (claimed, sentAt) => this.#arrived(claimed, sentAt),
      trouble: (error) => this.#claimFailed(error),
    })
    this.#ticker = setInterval(() => this.#tick(), POLL)
    this.#plan()
  }

  get queue(): string {
    return this.#settings.queue
  }

  /** How many handlers run now, of how many at most, and how many jobs are claimed for the next ones. */
  get load(): { running: number; buffered: number; slots: number } {
    const running = this.#batches?.running ?? this.#running.size
    return { running, buffered: this.#buffer.size, slots: this.#settings.concurrency }
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
    this.#plan()
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

  #tick(): void {
    this.wake()
    this.#record()
  }

  #record(): void {
    const slices = this.#recorder.take()
    if (slices.length === 0) return
    this.#store.operations.record({ slices }).catch((error: unknown) => {
      // Only figures for people are lost, and the store's trouble is already told by the claims and endings around it.
      if (!(error instanceof MillpondError)) throw error
    })
  }

  /**
   * Endings and a claim go out together: at the end of the turn when nothing else runs here, else after the sockets and timers
   * that are ready now have had theirs, since what they finish can go along.
   */
  #plan(): void {
    if (this.#planned) return
    this.#planned = true
    if (this.#running.size === 0) atEndOfTurn(this.#go)
    else setImmediate(this.#go)
  }

  readonly #go = (): void => {
    this.#planned = false
    this.#endings.flush()
    this.#claims.claim()
  }

  #wanted(): Wanted {
    const { concurrency, lanes } = this.#settings
    if (lanes !== undefined) return lanes.wanted([...this.#running, ...this.#buffer])
    if (this.#batches !== undefined) return this.#batches.wanted(this.#buffer.size)
    return { limit: this.#prefetch.wanted(concurrency, this.#running, this.#buffer.size), minPriority: 0 }
  }

  async #claim({ limit, minPriority }: Wanted): Promise<{ claimed: Claimed; sentAt: number }> {
    this.#cancelBellsAtClaim = this.#cancelBells
    const ready = this.#ready()
    if (ready !== undefined) await ready
    const sentAt = performance.now()
    const perGroup = this.#batches?.perGroup ?? 1
    const request = { queue: this.queue, worker: this.id, limit, minPriority, perGroup, lease: null }
    const claimed = await this.#store.operations.claim(request)
    return { claimed, sentAt }
  }

  #claimFailed(error: MillpondError): void {
    if (!this.#claims.closed) this.#events.trouble(error)
    this.#tellQuiet()
    // A batch may have waited for what this claim would bring.
    this.#pump(performance.now())
  }

  #arrived({ now, lease, jobs, retryAfter, limited }: Claimed, sentAt: number): void {
    this.#prefetch.limited = limited
    if (retryAfter !== null) this.#owner.due(retryAfter)
    if (jobs.length > 0) this.#leases.lasting(lease)
    const arrival: Arrival = { now, at: performance.now(), heldUntil: sentAt + lease }
    const attempts = jobs.map((job) => new Attempt(job, arrival, this.#terms))
    this.#buffer.add(attempts)
    if (this.#claims.closed) {
      this.#giveBack(this.#buffer.clear())
      this.#tellQuiet()
      return
    }
    // The next claim goes out before these handlers start, so that the store works while they do.
    this.#claims.claim()
    this.#turnBegan = performance.now()
    this.#pump(this.#turnBegan)
    this.#buffer.watch()
    if (this.#cancelBells !== this.#cancelBellsAtClaim) void this.#leases.extend(attempts)
  }

  /** @param now `performance.now()`, which costs enough to be handed on */
  #pump(now: number): void {
    if (this.#batches !== undefined) {
      this.#pumpBatches(this.#batches, now)
      return
    }
    let time = now
    while (this.#startable) {
      if (time - this.#turnBegan > MAX_TURN) {
        this.#giveWay()
        return
      }
      const attempt = this.#buffer.first
      if (attempt === null) return
      this.#buffer.remove(attempt)
      // This process was stopped, or its event loop held up, for longer than the lease: someone else may have the job by now.
      if (time <= attempt.heldUntil) {
        this.#begin(attempt, time)
        this.#runner.run(attempt)
      } else this.#end(released(attempt))
      // Mostly one slot is free and one job is started, which needs no other look at the clock.
      if (this.#startable) time = performance.now()
    }
  }

  #pumpBatches(batches: Batches, now: number): void {
    for (let time = now; this.#yield === undefined; time = performance.now()) {
      if (time - this.#turnBegan > MAX_TURN && this.#buffer.size > 0) {
        this.#giveWay()
        return
      }
      const attempts = batches.take(this.#buffer, time, this.#claims.underWay)
      if (attempts === undefined) return
      const isHeld = ({ heldUntil }: Attempt) => time <= heldUntil
      this.#giveBack(attempts.filter((attempt) => !isHeld(attempt)))
      const held = attempts.filter(isHeld)
      for (const attempt of held) this.#begin(attempt, time)
      batches.start(held)
    }
  }

  get #startable(): boolean {
    return this.#buffer.size > 0 && this.#running.size < this.#settings.concurrency && this.#yield === undefined
  }

  /** Lets timers and sockets have a turn before further handlers start. */
  #giveWay(): void {
    this.#yield = setImmediate(() => {
      this.#yield = undefined
      this.#goOn()
    })
  }

  /** Timers and sockets had a turn. */
  #goOn(): void {
    this.#turnBegan = performance.now()
    this.#pump(this.#turnBegan)
    this.#plan()
  }

  #giveBack(attempts: Attempt[]): void {
    for (const attempt of attempts) this.#end(released(attempt))
  }

  #begin(attempt: Attempt, now: number): void {
    attempt.startedAt = now
    this.#running.append(attempt)
    this.#recorder.add(attempt.claimed.priority, 'wait', attempt.wait)
    if (this.#events.has('started')) {
      this.#events.emit('started', { ...this.#eventOf(attempt), wait: attempt.wait })
    }
  }

  #ended(endings: readonly (Ending | Committed)[]): void {
    const now = performance.now()
    for (const ending of endings) {
      this.#finish(ending.attempt, now)
      if (ending.kind === 'committed') this.#settled(ending, ending.outcome)
      else this.#end(ending)
    }
    this.#pump(now)
    this.#plan()
  }

  /** The handler's part is over: the slot is free. */
  #finish(attempt: Attempt, now: number): void {
    attempt.finishedAt = now
    if (attempt.list !== this.#running) return
    this.#leave(attempt)
    this.#prefetch.ran(attempt.run)
    this.#recorder.add(attempt.claimed.priority, 'run', attempt.run)
  }

  #leave(attempt: Attempt): void {
    this.#running.remove(attempt)
    attempt.batch?.left(attempt)
  }

  #end(ending: Ending): void {
    ending.attempt.ending = true
    this.#endings.add(ending)
    if (ending.kind === 'release' && this.#claims.closed) this.#givenBack.add(ending.id)
    this.#plan()
  }

  #settled(ending: Ending | Committed, outcome: HoldOutcome | FailOutcome): void {
    const { attempt } = ending
    const events = this.#events
    const last = ending.kind !== 'release' && attempt.finishedAt >= this.#closedAt
    if (last && outcome !== 'stale') this.#finished++
    if (outcome === 'stale') {
      if (ending.kind !== 'release') events.emit('stale', this.#eventOf(attempt))
    } else if (ending.kind === 'complete' || ending.kind === 'committed') {
      if (ending.kind === 'complete') this.#owner.completed(ending.id, ending.result)
      if (events.has('completed')) events.emit('completed', { ...this.#timingsOf(attempt), result: ending.value })
    } else if (ending.kind === 'release') {
      if (ending.pause) events.emit('rateLimited', { ...this.#eventOf(attempt), pause: ending.pause })
    } else if (ending.kind === 'fail') {
      if (outcome === 'dead') events.emit('dead', { ...this.#eventOf(attempt), error: ending.error })
      else events.emit('failed', { ...this.#timingsOf(attempt), error: ending.error })
    }
    this.#tellQuiet()
  }

  #lost(attempt: Attempt, reason: MillpondError): void {
    // An ending attempt gets its answer from the store; this may be no more than an echo of it.
    if (attempt.ending || attempt.over !== undefined) return
    attempt.end(reason)
    const now = performance.now()
    if (attempt.list === this.#running) {
      this.#finish(attempt, now)
      this.#events.emit('stale', this.#eventOf(attempt))
    } else if (attempt.list === this.#buffer) this.#buffer.remove(attempt)
    this.#tellQuiet()
    this.#pump(now)
    this.#plan()
  }

  /** It is given back, whatever its handler still does. */
  #stop(attempt: Attempt): void {
    const { id } = attempt.claimed
    attempt.end(new MillpondError('Closed', `the worker closed while job ${id} ran; it was given back`, { id }))
    this.#leave(attempt)
    this.#end(released(attempt))
  }

  #eventOf({ claimed }: Attempt) {
    const { id, attempt, priority } = claimed
    return { queue: this.queue, id, attempt, priority }
  }

  #timingsOf(attempt: Attempt) {
    return { ...this.#eventOf(attempt), wait: attempt.wait, run: attempt.run }
  }

  /** Resumes a `#close` that waits for the last handler, if no handler and no claim is left. */
  #tellQuiet(): void {
    if (this.#running.size === 0 && !this.#claims.underWay) this.#onQuiet?.()
  }

  async #close(timeout: number): Promise<CloseReport> {
    this.#closedAt = performance.now()
    const until = this.#closedAt + timeout
    this.#claims.close()
    this.#buffer.close()
    this.#batches?.close()
    this.#giveBack(this.#buffer.clear())
    for (const attempt of [...this.#running]) if (attempt.heldBack) this.#stop(attempt)
    if (this.#running.size > 0 || this.#claims.underWay) {
      const quiet = new Promise<void>((resolve) => {
        this.#onQuiet = resolve
      })
      await within(timeout, quiet)
    }
    for (const attempt of [...this.#running]) this.#stop(attempt)
    // A store that is gone must not keep a process from ending; its leases will run out.
    const told = this.#endings.flushed()
    const patience = setTimeout(() => this.#endings.abandon(), Math.ceil(Math.max(until - performance.now(), 1000)))
    await told
    clearTimeout(patience)
    clearInterval(this.#ticker)
    this.#leases.close()
    this.#record()
    await this.#settings.replica?.close()
    this.#owner.removeWorker(this)
    return { finished: this.#finished, givenBack: this.#givenBack.size }
  }
}
