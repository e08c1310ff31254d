import type { Bell, Capabilities, Store } from '../store.ts'
import { openStore } from '../stores/open.ts'
import { LARGEST_PAYLOAD, MAX_PAYLOAD } from '../values/encoding/encoding.ts'
import type { StandardSchema } from '../values/encoding/schema.ts'
import { MAX_SEAL } from '../values/encoding/sealed-form.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { PondEmitter, type PondEvents } from '../values/jobs/events.ts'
import { checkId } from '../values/jobs/ids.ts'
import { type JobInfo, jobInfo } from '../values/jobs/job.ts'
import type { FinalState, NewJob } from '../values/jobs/records.ts'
import { needs } from '../values/operations/capabilities.ts'
import type { QueueStats } from '../values/operations/requests.ts'
import { type CloseReport, type PondCloseOptions, pondCloseOptions } from '../values/options/close-options.ts'
import { checkObject, checkOptions, defined, isDuration, isInteger, isSignal } from '../values/options/options.ts'
import { checkQueueName } from '../values/settings/names.ts'
import { milliseconds } from '../values/time/duration.ts'
import { within } from '../values/time/within.ts'
import { Sweeper } from '../worker/sweeper.ts'
import { isShown } from './actions.ts'
import { BellListener } from './bell-listener.ts'
import { CapacityWaiters } from './capacity-waiters.ts'
import { type Explanation, explain } from './explain.ts'
import { type Graph, type GraphOptions, graphOf } from './graph.ts'
import { type PondInternals, type ResultOptions, registerInternals } from './internals.ts'
import { type SignalTarget, signal, stepsOf } from './job-steps.ts'
import { KnownSettings } from './known-settings.ts'
import type { OpenOptions } from './open-options.ts'
import { PondWorkers } from './pond-workers.ts'
import type { Pushed } from './push/options.ts'
import { type GraphJob, type PushAllOptions, pushAll, type QueueOf } from './push/push-all.ts'
import { Pusher } from './push/pusher.ts'
import { UnsettledPushes } from './push/unsettled-pushes.ts'
import { Queue } from './queue.ts'
import type { QueueOptions } from './queue-options.ts'
import { Results } from './results.ts'
import type { ScheduleOptions } from './schedule-options.ts'
import { Schedules } from './schedules.ts'
import { closeOnSignals } from './signals.ts'
import { type QueueReport, queueReport, type StatsOptions } from './stats.ts'
import { removeQueue } from './steps.ts'
import { type WorkerInfo, workerInfo } from './worker-info.ts'

export interface PondCloseReport extends CloseReport {
  /** Live jobs that were lost with a store that is not durable; 0 for durable stores, and for memory with a spill store. */
  dropped: number
}

type SchemaOf<Options> = Options extends { schema: infer Schema extends StandardSchema } ? Schema : never
type InputOf<Schema extends StandardSchema> = NonNullable<Schema['~standard']['types']>['input']
type OutputOf<Schema extends StandardSchema> = NonNullable<Schema['~standard']['types']>['output']

/** Milliseconds that pushes and sweeps under way have at least to finish when a pond closes. */
const MIN_FLUSH_TIME = 1000
/** And that the store has at least to close its connections. */
const MIN_CLOSE_TIME = 200

/**
 * An open store: here queues are made and jobs are followed.
 *
 * `Store…` in a list of errors stands for StoreUnavailable, StoreBusy, StoreFull, StoreCorrupt and StoreFailed.
 */
export class Millpond implements AsyncDisposable {
  readonly #store: Store
  readonly #events = new PondEmitter()
  readonly #internals: PondInternals
  readonly #sweeper: Sweeper
  readonly #results: Results
  readonly #capacityWaiters: CapacityWaiters
  readonly #workers: PondWorkers
  readonly #bells: BellListener
  readonly #pusher: Pusher
  /** The schedules of the store, from every process: list, pause, resume, remove, run now, and the preview of a line. */
  readonly schedules: Schedules
  /** Pushes that have not reached the pusher yet: a schema or the queue's settings take time, or there are many jobs. */
  readonly #pushes = new Set<Promise<unknown>>()
  #closing: Promise<PondCloseReport> | undefined
  readonly #stopping = new AbortController()
  /** The pond is closing and no handler runs any more: nothing is accepted. */
  #sealed = false
  #signals: (() => void) | undefined

  /**
   * Opens the store that the URL names: `memory:`, `sqlite:PATH`, `redis://…`, `postgres://…` or `amqp://…`. `memory:` takes the option
   * `spill`: the URL of a durable store. Several URLs of one kind, in a list or with commas between, are one pond whose queues are spread
   * over them; every process names them in the same order.
   * @param options those of every store, and those of the URL's own: `SqliteOptions` and so on; with several URLs, for each
   * @throws InvalidOption, UnknownScheme, DriverMissing, NotSupported, StoreVersion, ShardMismatch, `Store…`
   */
  static async open(url: string | URL | readonly (string | URL)[], options: OpenOptions = {}): Promise<Millpond> {
    checkObject(options, 'open')
    const { maxPayload, signals, ...rest } = options
    const most = rest.seal === undefined ? LARGEST_PAYLOAD : LARGEST_PAYLOAD - MAX_SEAL
    const rules = { maxPayload: isInteger(1, most), signals: isSignals }
    checkOptions({ maxPayload, signals }, rules, 'open')
    const pond = new Millpond(await openStore(url, rest), maxPayload)
    if (signals) pond.#signals = closeOnSignals(pond, signals === true ? {} : signals)
    return pond
  }

  /** A pond over a store that is open already, such as one of your own (`millpond/store`). @param maxPayload as of `open` */
  constructor(store: Store, maxPayload: number = MAX_PAYLOAD) {
    this.#store = store
    this.#bells = new BellListener(store, (bell) => this.#rung(bell))
    this.#sweeper = new Sweeper(
      store,
      ({ lost }) => {
        for (const event of lost) this.#events.emit('lost', event)
      },
      (error) => this.#events.trouble(error),
    )
    this.#workers = new PondWorkers(store, this.#sweeper, this.#bells)
    this.#results = new Results(store, (waiting) => (waiting ? this.#bells.need() : this.#bells.release()))
    this.#pusher = new Pusher(store, (jobs) => this.#workers.expect(jobs))
    this.#capacityWaiters = new CapacityWaiters(
      this.#pusher,
      () => this.#bells.need(),
      (queue) => this.#events.emit('full', { queue }),
    )
    this.#internals = {
      pond: this,
      store,
      events: this.#events,
      maxPayload,
      settings: new KnownSettings(store, (queue, settings) => this.#events.overridden(queue, settings)),
      pusher: this.#pusher,
      workers: this.#workers,
      sweeper: this.#sweeper,
      assertOpen: () => this.#assertOpen(),
      assertClaiming: () => {
        if (this.#closing !== undefined) throw closed()
      },
      pending: (push) => this.#pending(push),
      pushed: (job, id, existing) => this.#pushed(job, id, existing),
      capacityWaiters: this.#capacityWaiters,
      unsettled: new UnsettledPushes(),
      due: (ms) => this.#sweeper.due(ms),
      completed: (id, result) => this.#results.completed(id, result),
      removeWorker: (worker) => this.#workers.remove(worker),
    }
    this.schedules = new Schedules(this.#internals)
    registerInternals(this, this.#internals)
  }

  /**
   * Declares a schedule: a job for the queue at each time of a cron line, or `every 90s`. Call it whenever the program starts. What
   * is declared anew takes effect at once; a version that it replaced does not come back while the new one is declared by a process.
   * It is fired by processes with workers, each time by one of them.
   * @param when a cron line of 5 or 6 fields (seconds first), a name such as `@daily`, or `every 90s`
   * @throws InvalidOption, InvalidName, NotSupported (a store without `schedules`), Payload…, SchemaMismatch, Closed, `Store…`
   */
  async schedule<Data>(
    name: string,
    when: string,
    queue: QueueOf<Data>,
    data: Data,
    options?: ScheduleOptions,
  ): Promise<void> {
    await this.schedules.declare(name, when, queue, data, options)
  }

  /** `name`: the kind of the store, as in its URL's scheme. `capabilities`: what it can do. */
  get store(): { name: string; capabilities: Capabilities } {
    return { name: this.#store.name, capabilities: this.#store.capabilities }
  }

  /**
   * A queue by its name: 1 to 128 of the characters `A–Z a–z 0–9 _ - . : /`, the first one a letter or digit. The store
   * makes the queue at the first push. Without a schema, the types of the payload and of the result are only declared,
   * never checked. The handler gets the payload as it was stored: a Date is its ISO text (`Stored`).
   * @throws InvalidName, InvalidOption, Closed
   */
  queue<const Options extends QueueOptions & { schema: StandardSchema }>(
    name: string,
    options: Options,
  ): Queue<InputOf<SchemaOf<Options>>, unknown, OutputOf<SchemaOf<Options>>>
  queue<Data = unknown, Result = unknown>(name: string, options?: QueueOptions): Queue<Data, Result>
  queue(name: string, options?: QueueOptions): Queue {
    this.#assertOpen()
    return new Queue(this.#internals, name, options)
  }

  /**
   * Pushes jobs of any queues that wait for each other: all of them, or none. In `after`, a job names others by their places in the list,
   * or by their ids. All is read before the call returns, and checked before any is sent. A full queue rejects with `QueueFull`, even with
   * `whenFull: 'wait'`. To repeat such a call safely, give each job its own `id`.
   * @param jobs at most 5,000, and 16 MiB
   * @returns in the order of the list
   * @throws GraphCycle, ParentUnknown, KeyHeld, and as `queue.push`
   */
  pushAll<Datas extends readonly unknown[]>(
    jobs: { readonly [At in keyof Datas]: GraphJob<Datas[At]> },
    options?: PushAllOptions,
  ): Promise<Pushed[]> {
    return pushAll(this.#internals, jobs, options)
  }

  /**
   * The jobs that are connected with this one by waiting for each other, the nearest first, and how many are in each state.
   * @param options `limit`: most jobs that are looked at; 1 to 100,000, 1,000 unless given
   * @returns undefined if the store does not know the job
   * @throws InvalidName, InvalidOption, NotSupported (a store without `graphs`), Closed, `Store…`
   */
  async graph(id: string, options: GraphOptions = {}): Promise<Graph | undefined> {
    this.#assertOpen()
    return graphOf(this.#store, checkId(id), options)
  }

  /** All that the store knows about a job; undefined if it does not know the job, or no longer. @throws InvalidName, Closed, `Store…` */
  async job(id: string): Promise<JobInfo | undefined> {
    this.#assertOpen()
    const [record] = await this.#store.operations.find({ ids: [checkId(id)] })
    if (!record) return undefined
    const info = jobInfo(record)
    return record.journal ? { ...info, steps: await stepsOf(this.#store, record.id) } : info
  }

  /**
   * Sends a signal to a live job: it is kept until a `ctx.waitFor` of its handler takes it, and a parked job goes on.
   * @param target the job's id, or its queue and key
   * @param data any value that can be encoded; undefined unless given
   * @returns the id of the job
   * @throws JobUnknown, JobEnded, StepsTooLarge, PayloadNotEncodable, PayloadTooLarge, InvalidName, InvalidOption, NotSupported (a store
   * without `steps`), Closed, `Store…`
   */
  async signal(target: SignalTarget, name: string, data?: unknown): Promise<{ id: string }> {
    this.#assertOpen()
    return { id: await signal(this.#store, target, name, data, this.#internals.maxPayload) }
  }

  /**
   * Waits until the job is finished, in whichever process it runs, and resolves to what its handler returned. While the store cannot be
   * reached, it goes on waiting.
   * The type of the result is the caller's word for it: `pond.result<Receipt>(id)`.
   * @throws JobFailed and ResultTimeout (their `cause` is the job's last error, if an attempt has failed), JobCancelled,
   * ParentFailed, JobUnknown, PayloadNotDecodable, StoreCorrupt, InvalidOption, InvalidName, Closed, the signal's reason
   */
  async result<Result = unknown>(id: string, options: ResultOptions = {}): Promise<Result> {
    this.#assertOpen()
    const { timeout, signal } = checkOptions(options, { timeout: isDuration(0), signal: isSignal }, 'result')
    const ms = timeout === undefined ? undefined : milliseconds(timeout, 'timeout')
    // The caller has said what the handler returns.
    return (await this.#results.wait(checkId(id), ms, signal)) as Result
  }

  /**
   * Cancels a live job. If it is running, its handler's `signal` is aborted, and the store refuses its completion.
   * @returns the state of the job now: `cancelled`, or the final state that it had before; undefined if the store does not know the job
   * @throws InvalidName, Closed, `Store…`
   */
  async cancel(id: string): Promise<FinalState | undefined> {
    this.#assertOpen()
    const known = checkId(id)
    const [state] = await this.#store.operations.cancel({ ids: [known] })
    if (state === 'cancelled' && this.#events.has('cancelled')) {
      const [record] = await this.#store.operations.find({ ids: [known] })
      if (record) this.#events.emit('cancelled', { id: known, queue: record.queue })
    }
    return state ?? undefined
  }

  /**
   * Why a job does not run: when it is due, which limit or rate holds it back and until when, how many jobs come before it.
   * @returns undefined if the store does not know the job
   * @throws InvalidName, NotSupported (a store without limits), Closed, `Store…`
   */
  async explain(id: string): Promise<Explanation | undefined> {
    this.#assertOpen()
    return explain(this.#store, checkId(id))
  }

  /**
   * The same as `queue.stats`, for every queue but `millpond.actions`, the log of actions: that one is told of by its name alone.
   * @param options `minutes`: how far back the percentiles look; whole minutes, 1 to 60, 5 unless given
   * @throws InvalidOption, Closed, `Store…`
   */
  async stats(options: StatsOptions = {}): Promise<QueueReport[]> {
    this.#assertOpen()
    const { minutes = 5 } = checkOptions(options, { minutes: isInteger(1, 60) }, 'stats')
    const all = await this.#store.operations.stats({ minutes })
    return all.filter(isShown).map((stats) => queueReport(stats.queue, stats))
  }

  /**
   * Removes a queue: its jobs of every state, settings, groups, histograms and totals, in steps of 1,000 jobs. Jobs
   * that are pushed meanwhile may be removed as well; a later push makes the queue again, as a new one. Open `Queue`
   * objects do not tell their settings again: make new ones.
   * @returns how many jobs were removed; 0 if there was no such queue
   * @throws InvalidName, NotSupported (a store without `remove`), Closed, `Store…`
   */
  async removeQueue(name: string): Promise<number> {
    this.#assertOpen()
    const queue = checkQueueName(name)
    needs(this.#store, 'remove', 'removeQueue')
    const removed = await removeQueue(this.#store, queue)
    this.#internals.settings.forget(queue)
    return removed
  }

  /**
   * The workers that were heard of in the last minute, in every process and language, longest known first.
   * @param options `queue`: only those that claim from it
   * @throws InvalidOption, InvalidName, NotSupported (a store without `workers`), Closed, `Store…`
   */
  async workers(options: { queue?: string | undefined } = {}): Promise<WorkerInfo[]> {
    this.#assertOpen()
    const { queue } = checkOptions(options, { queue: (value) => checkQueueName(value) !== '' }, 'workers')
    needs(this.#store, 'workers', 'workers')
    return (await this.#store.operations.workers(defined({ queue }))).map(workerInfo)
  }

  /**
   * Calls the listener whenever the event happens in this process; see `PondEvents`. A listener that throws is an uncaught exception.
   * @returns a function that removes the listener
   * @throws InvalidOption
   */
  on<Name extends keyof PondEvents>(name: Name, listener: (...args: PondEvents[Name]) => void): () => void {
    return this.#events.on(name, listener)
  }

  /** Aborted, with `Closed` as reason, when the pond begins to close, just before `before` is called. Long waits should end then. */
  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /**
   * Drains the pond, then closes the store. Workers stop claiming, running handlers may finish within `timeout`, and
   * the other claimed jobs are given back. Pushes are accepted until the last handler has ended, so that a job may
   * still push the next one; later ones reject with `Closed`. May be called more than once.
   * @param options `timeout`: 0 to 24 days, 30 s unless given; it covers `before` as well. `before`: called first. If it fails, the pond is
   * closed all the same, and `close` then rejects with its error.
   * @throws InvalidOption; `Store…` where jobs in memory could not be handed to the spill store: the message says how many
   */
  async close(options: PondCloseOptions = {}): Promise<PondCloseReport> {
    const { timeout, before } = pondCloseOptions(options, 'close')
    this.#signals?.()
    this.#stopping.abort(closed())
    return before === undefined ? this.#closed(timeout) : this.#closeAfter(before, timeout)
  }

  /** Calls `close()`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** `before` may itself close the pond, so it is not part of `#closing`: it would wait for its own end. */
  async #closeAfter(before: () => unknown, timeout: number): Promise<PondCloseReport> {
    const began = performance.now()
    let report: PondCloseReport
    try {
      await within(timeout, (async () => before())())
    } finally {
      report = await this.#closed(Math.max(0, timeout - Math.round(performance.now() - began)))
    }
    return report
  }

  #closed(timeout: number): Promise<PondCloseReport> {
    this.#closing ??= this.#close(timeout)
    return this.#closing
  }

  async #close(timeout: number): Promise<PondCloseReport> {
    const until = performance.now() + timeout
    this.#sealed = this.#workers.size === 0
    const left = this.#capacityWaiters.close()
    const report = await this.#workers.close(timeout)
    this.#sealed = true
    this.schedules.close()
    // An unreachable store must not keep the process from ending. One that has not answered the workers gets no more time.
    const least = report.untold === undefined ? MIN_FLUSH_TIME : 0
    await within(Math.max(until - performance.now(), least), this.#flushed(left))
    const { durable, spill } = this.#store.capabilities
    const dropped = durable || spill ? 0 : await this.#live()
    await this.#closeStore(Math.max(until - performance.now(), least, MIN_CLOSE_TIME))
    this.#bells.close()
    return { ...report, dropped }
  }

  /** A store that is away or silent is not waited for longer. One that nobody shares is no server. */
  async #closeStore(ms: number): Promise<void> {
    const closed = this.#store.close()
    if (!this.#store.capabilities.shared) return closed
    // It goes on, and what it fails with then is nobody's.
    closed.catch(() => {})
    await within(ms, closed)
  }

  /** @param left settles when no push waits for room any more */
  async #flushed(left: Promise<void>): Promise<void> {
    await this.#pusher.flushed()
    await left
    await Promise.allSettled(this.#pushes)
    await this.#results.close()
    await this.#sweeper.stop()
    await this.#workers.registry.close()
  }

  async #live(): Promise<number> {
    const all = await this.#store.operations.stats({ minutes: 0 })
    const live = ({ counts }: QueueStats) => counts.blocked + counts.scheduled + counts.waiting + counts.running
    return all.reduce((sum, stats) => sum + live(stats), 0)
  }

  #assertOpen(): void {
    if (this.#sealed) throw closed()
  }

  #pending<T>(push: Promise<T>): Promise<T> {
    this.#pushes.add(push)
    const over = () => this.#pushes.delete(push)
    push.then(over, over)
    return push
  }

  #pushed(job: NewJob, id: string, existing: boolean): void {
    if (job.delay > 0) this.#sweeper.due(job.delay)
    else if (job.runAt !== null) this.#sweeper.due(Math.max(0, job.runAt - Date.now()))
    if (this.#events.has('pushed')) this.#events.emit('pushed', { queue: job.queue, id, existing })
  }

  #rung(bell: Bell): void {
    if (bell.kind === 'finished') this.#results.finished(bell.queue, bell.ids)
    else if (bell.kind === 'room') this.#capacityWaiters.rung(bell.queue)
    else this.#workers.rung(bell)
  }
}

function isSignals(value: unknown): boolean | string {
  if (typeof value === 'boolean') return true
  if (typeof value !== 'object' || value === null) return 'true, false, or options of close'
  return pondCloseOptions(value, 'signals').timeout >= 0
}

function closed(): MillpondError {
  return new MillpondError('Closed', 'this pond is closed or closing; open a new one to go on')
}
