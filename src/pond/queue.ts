import type { Store } from '../store.ts'
import type { Stored } from '../values/encoding/stored.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { checkId } from '../values/jobs/ids.ts'
import { jobInfo, type ListedJob } from '../values/jobs/job.ts'
import type { JobState } from '../values/jobs/records.ts'
import { needs } from '../values/operations/capabilities.ts'
import { checkOptions, defined, isInteger } from '../values/options/options.ts'
import { computedDelay } from '../values/settings/backoff.ts'
import type { GroupRecord } from '../values/settings/limits.ts'
import { checkQueueName } from '../values/settings/names.ts'
import type { SettingName } from '../values/settings/settings.ts'
import { kindOf, milliseconds } from '../values/time/duration.ts'
import type { BatchHandler } from '../worker/batch-context.ts'
import type { Outcome } from '../worker/outcome.ts'
import type { Handler } from '../worker/single-runner.ts'
import { Worker } from '../worker/worker.ts'
import { type BulkPreview, type BulkReport, previewBulk, runBulk } from './bulk.ts'
import {
  type BulkOptions,
  type BulkRequestOf,
  bulkPlan,
  type CancelFilter,
  type DryRunOptions,
  type RemoveFilter,
  type RequeueFilter,
  type UpdateAllOptions,
  type UpdateFilter,
} from './bulk-options.ts'
import type { JobReader, PondInternals } from './internals.ts'
import { handlerOf } from './isolate-options.ts'
import { stepNumber } from './job-steps.ts'
import { type GroupLimitOptions, limitGroup, limitSettings, needsLimits } from './limits.ts'
import { type FilterOptions, type JobsOptions, jobsQuery, listJobs, PAGE_RULES, type PageOptions } from './listing.ts'
import { checkQueuePlan, type QueuePlan, type QueuePlanOptions, queuePlan } from './plan.ts'
import { type Callback, type PushedWithCallback, pushWithCallback } from './push/callback.ts'
import type { Pushed, PushManyOptions, PushOptions } from './push/options.ts'
import { Preparer } from './push/preparer.ts'
import { Producer, registerProducer } from './push/producer.ts'
import { UnsentSettings } from './push/unsent-settings.ts'
import {
  checkQueueOptions,
  checkSettingNames,
  needsSpill,
  type OverrideOptions,
  overriddenIn,
  overrideSettings,
  type QueueOptions,
  type QueueSetting,
  settingsOf,
  shownSettings,
} from './queue-options.ts'
import { type QueueReport, queueReport, type StatsOptions } from './stats.ts'
import { removeJobs, requeueDead } from './steps.ts'
import { jobUpdate, type UpdateOptions } from './update.ts'
import { type BatchWorkOptions, type IsolatedWorkOptions, type WorkOptions, workSettings } from './work-options.ts'

/**
 * One queue of a pond. Cheap: make it wherever it is needed. `Data` is what is pushed, `Result` what handlers return,
 * `Handled` the data that handlers get: the schema's output, or without a schema the data as they were stored.
 *
 * `Store…` in a list of errors stands for StoreUnavailable, StoreBusy, StoreFull, StoreCorrupt and StoreFailed.
 */
export class Queue<Data = unknown, Result = unknown, Handled = Stored<Data>> {
  readonly name: string
  readonly #pond: PondInternals
  readonly #options: QueueOptions
  readonly #settings: UnsentSettings
  readonly #producer: Producer
  /** Where this process computes the delays of its failures itself. */
  readonly #backoff: ((attempt: number, error: unknown) => number) | undefined

  /** @internal */
  constructor(pond: PondInternals, name: unknown, options: QueueOptions | undefined) {
    this.name = checkQueueName(name)
    this.#pond = pond
    this.#options = checkQueueOptions(this.name, options)
    const { limits, retry, schema } = this.#options
    if (limits !== undefined) needsLimits(pond.store, limits, `limits of queue ${this.name}`)
    needsSpill(pond.store, this.name, this.#options)
    this.#backoff = typeof retry?.backoff === 'function' ? computedDelay(retry.backoff) : undefined
    this.#settings = new UnsentSettings(pond.settings, settingsOf(this.name, this.#options))
    this.#settings.send()
    const spills = this.#options.whenFull === 'spill'
    const preparer = new Preparer(this.name, pond, schema, limitSettings(limits), spills)
    this.#producer = new Producer(this.name, pond, preparer, this.#settings, this.#options.whenFull)
    registerProducer(this, this.#producer)
  }

  /** @throws Closed */
  get #store(): Store {
    this.#pond.assertOpen()
    return this.#pond.store
  }

  /** The pond of this queue: there its jobs and their results are read. */
  get pond(): JobReader {
    return this.#pond.pond
  }

  /**
   * Resolves when the store has the job.
   *
   * If it rejects, the job was not stored, with one exception: after `StoreUnavailable` only the answer may have been
   * lost. To repeat such a push safely, give it an `id` and push again with the same one.
   * @throws SchemaMismatch, PayloadNotEncodable, PayloadTooLarge, InvalidOption, InvalidName, NotSupported (`tx` on a store without
   * transactions), TransactionMismatch, QueueFull, ParentUnknown, KeyHeld, Closed, `Store…`
   */
  push(data: Data, options?: PushOptions): Promise<Pushed> {
    return this.#producer.push(data, options)
  }

  /**
   * Pushes many jobs, in order. Items, data and options are read before the call returns. All are checked before any is
   * stored. They are stored in batches of at most 500 jobs or 1 MiB, so the call can fail midway: the error's `pushed`
   * is then how many jobs, counted from the first, the store has. To repeat such a call safely, give each job its own
   * `id` by `each`. Where jobs of the list wait for earlier ones of it, and with a callback, all or none are stored.
   * @param options `callback`: one more job, of any queue, that starts when all jobs of the list have ended; 5,000 jobs at most then
   * @throws as `push`
   */
  pushMany<Last>(
    items: readonly Data[],
    options: PushManyOptions<Data> & { callback: Callback<Last> },
  ): Promise<PushedWithCallback>
  pushMany(items: readonly Data[], options?: PushManyOptions<Data> & { callback?: undefined }): Promise<Pushed[]>
  pushMany(
    items: readonly Data[],
    options?: PushManyOptions<Data> & { callback?: Callback | undefined },
  ): Promise<Pushed[] | PushedWithCallback> {
    const { callback } = options ?? {}
    if (callback === undefined) return this.#producer.pushMany(items, options)
    return pushWithCallback(this.#pond, this.#producer, items, { ...options, callback })
  }

  /**
   * Starts a worker, which runs until it is closed. With the option `batch` the handler gets several jobs at once. With the URL of a module
   * and the option `isolate`, its default export is the handler, and runs in processes of its own.
   * @throws InvalidOption, NotSupported (`lanes`, `transaction` or `replica` on a store without them, or with `isolate`; `isolate` where no
   * process can be started), Closed
   */
  work(handler: BatchHandler<Handled>, options: BatchWorkOptions): Worker
  work(handler: Handler<Handled, Result | Outcome>, options?: WorkOptions): Worker
  work(module: URL, options: IsolatedWorkOptions): Worker
  work(
    given: Handler<Handled, Result | Outcome> | BatchHandler<Handled> | URL,
    options?: WorkOptions | BatchWorkOptions | IsolatedWorkOptions,
  ): Worker {
    this.#pond.assertClaiming()
    const { store, events, maxPayload } = this.#pond
    const { schema, lease = '30s' } = this.#options
    const { isolate, ...terms } = workSettings(this.name, options, milliseconds(lease, 'lease'), store, events)
    const { handler, isolated } = handlerOf(this.name, given, isolate, { ...terms, maxPayload }, store)
    const settings = { queue: this.name, ...terms, isolated, maxPayload, schema, backoff: this.#backoff }
    const sent = () => this.#settings.send()
    // A module that cannot be loaded must not cost any job an attempt.
    const ready = isolated === undefined ? sent : () => Promise.all([sent(), isolated.ready()]).then(() => {})
    const worker = new Worker(store, settings, handler, events, ready, this.#pond)
    this.#pond.workers.add(worker)
    return worker
  }

  /** Stops claims in every process until `resume`. Pushes go on, and running jobs finish. Kept in the store. @throws Closed, `Store…` */
  async pause(): Promise<void> {
    await this.#store.operations.configure({ queue: this.name, paused: true })
  }

  /** Allows claims again, in every process. @throws Closed, `Store…` */
  async resume(): Promise<void> {
    await this.#store.operations.configure({ queue: this.name, paused: false })
  }

  /**
   * Sets what code cannot change any more, in any process, until `clearOverrides`: for people who look after a queue. A
   * program that gives other values emits `overridden`. Only what is given is set; of `limits`, too.
   * @param options as those of `pond.queue` that are kept in the store; a `backoff` that is a function is not
   * @throws InvalidOption, NotSupported (limits, on a store without them), Closed, `Store…`
   */
  async override(options: OverrideOptions): Promise<void> {
    const store = this.#store
    await this.#settings.send()
    await store.operations.configure({ ...overrideSettings(store, this.name, options), by: 'operator' })
  }

  /**
   * Gives settings back to code: what code has given last is in effect again, or else the default.
   * @param names as `settings` names them; all that are overridden unless given
   * @throws InvalidOption, Closed, `Store…`
   */
  async clearOverrides(names?: readonly SettingName[]): Promise<void> {
    const { operations } = this.#store
    const clear =
      names === undefined ? overriddenIn(await operations.settings({ queue: this.name })) : checkSettingNames(names)
    await operations.configure({ queue: this.name, by: 'operator', clear })
  }

  /**
   * Every setting: its value in effect, and who has set it, an operator, code or nobody. A queue that the store does
   * not know has the defaults.
   * @throws Closed, `Store…`
   */
  async settings(): Promise<QueueSetting[]> {
    const store = this.#store
    await this.#settings.send()
    const report = store.capabilities.settings ? await store.operations.settings({ queue: this.name }) : null
    return shownSettings(store, report)
  }

  /**
   * Gives a group limits of its own, instead of those that the queue has for its groups, and a weight. Kept in the
   * store. Groups take turns from then on.
   * @param group the jobs without a group: `''`
   * @param limits what is left out is as the queue has it; null: all of it
   * @throws InvalidOption, InvalidName, NotSupported (a store without limits), Closed, `Store…`
   */
  async limitGroup(group: string, limits: GroupLimitOptions | null): Promise<void> {
    const store = this.#store
    await this.#settings.send()
    await limitGroup(store, this.name, group, limits)
  }

  /**
   * The groups that have waiting or running jobs or limits of their own, by name, a page at a time. Empty if groups do not take turns here.
   * @param options `limit`: 1 to 1,000, 100 unless given. `after`: the last name of the page before.
   * @throws InvalidOption, NotSupported (a store without limits), Closed, `Store…`
   */
  async groups(options: PageOptions = {}): Promise<GroupRecord[]> {
    const store = this.#store
    const { limit = 100, after } = checkOptions(options, PAGE_RULES, 'groups')
    await this.#settings.send()
    needs(store, 'groups', 'groups')
    return store.operations.groups({ queue: this.name, limit, ...defined({ after }) })
  }

  /**
   * Jobs in one state, a page at a time: waiting jobs by priority, then oldest first, scheduled jobs by due time,
   * running jobs by the end of their lease, finished jobs newest first. Jobs that move while you page may be missed or
   * seen twice; all others are listed once.
   * @param options `limit`: 1 to 1,000, 100 unless given. `after`: the `cursor` of the last job of the page before. The
   * others are filters, which have no index: a rare match may take a look at every job of the state.
   * @returns fewer than `limit` only at the end of the list
   * @throws InvalidOption, InvalidName, NotSupported (a store without lists, `text` on a store without it), Closed, `Store…`
   */
  async jobs(state: JobState, options: JobsOptions = {}): Promise<ListedJob<Stored<Data>, Stored<Result>>[]> {
    const store = this.#store
    const jobs = await listJobs(store, jobsQuery(store, this.name, state, options))
    // As with handlers, the caller has said what the data and results are.
    return jobs.map((record) => ({ ...jobInfo(record), cursor: record.cursor })) as ListedJob<
      Stored<Data>,
      Stored<Result>
    >[]
  }

  /**
   * Changes a blocked, scheduled or waiting job. A blocked one stays blocked. The job keeps its id, key, group and attempts, and its place
   * among jobs of its priority.
   * @returns `updated`; else nothing was changed: the state that the job has instead, or undefined if the store does not know it
   * @throws SchemaMismatch, PayloadNotEncodable, PayloadTooLarge, InvalidOption, InvalidName, NotSupported (a store
   *   without `update`), Closed, `Store…`
   */
  async update(id: string, options: UpdateOptions<Data>): Promise<'updated' | JobState | undefined> {
    const store = this.#store
    const { maxPayload } = this.#pond
    const change = await jobUpdate(id, options, { queue: this.name, store, maxPayload, schema: this.#options.schema })
    const [outcome] = await store.operations.update({ items: [change] })
    const { delay, runAt } = change
    if (runAt !== undefined) this.#pond.due(Math.max(0, runAt - Date.now()))
    else if (delay !== undefined && delay > 0) this.#pond.due(delay)
    return outcome ?? undefined
  }

  /**
   * Removes jobs of any state, as if they had never been pushed. The claim of a running one is stale: its handler's
   * `signal` is aborted, and its completion refused. A call that waits for the result rejects with `JobUnknown`.
   * @param ids the jobs, as an array: `remove([id])` for one
   * @returns how many the store had
   * @throws InvalidOption, InvalidName, NotSupported (a store without `remove`), Closed, `Store…`
   */
  async remove(ids: readonly string[]): Promise<number> {
    const store = this.#store
    if (!Array.isArray(ids)) {
      throw new MillpondError('InvalidOption', `remove takes an array of ids, as in remove([id]); got ${kindOf(ids)}`)
    }
    needs(store, 'remove', 'remove')
    return removeJobs(store, ids.map(checkId))
  }

  /**
   * Sends dead or cancelled jobs back to waiting, with all their attempts. A job that dies again meanwhile is not sent back again.
   * A job with steps goes on from where it broke.
   * @param ids the jobs, as an array: `requeue([id])` for one. Unset: every dead job of the queue.
   * @param options `from`: the name of a step of one job, which forgets that step and all that it kept after it
   * @returns how many were requeued. A job whose key a live job has by now is not.
   * @throws InvalidOption, InvalidName, NotSupported (`from` on a store without `steps`), Closed, `Store…`
   */
  async requeue(ids?: readonly string[], options?: { from?: string | undefined }): Promise<number> {
    const store = this.#store
    const { from } = checkOptions(
      options,
      { from: (value) => typeof value === 'string' || 'the name of a step' },
      'requeue',
    )
    if (from !== undefined) return this.#requeueFrom(store, ids, from)
    if (ids === undefined) return requeueDead(store, this.name)
    if (Array.isArray(ids)) return (await store.operations.requeue({ ids: ids.map(checkId) })).requeued
    const what = 'an array of ids, as in requeue([id]), or nothing for every dead job of the queue'
    throw new MillpondError('InvalidOption', `requeue takes ${what}; got ${kindOf(ids)}`)
  }

  async #requeueFrom(store: Store, ids: readonly string[] | undefined, from: string): Promise<number> {
    const [id, ...others] = Array.isArray(ids) ? ids : []
    if (id === undefined || others.length > 0) {
      throw new MillpondError('InvalidOption', `requeue from a step takes one id, as in requeue([id], { from })`)
    }
    const own = checkId(id)
    const forget = await stepNumber(store, own, from)
    return (await store.operations.requeue({ ids: [own], forget })).requeued
  }

  /**
   * Sends the dead jobs that pass a filter back to waiting, with all their attempts, in steps of at most 1,000. Only jobs that were dead
   * when the run began: one that dies again meanwhile is not sent back again. A job whose key a live job has stays.
   * @param filter all that is given must hold; unset: every dead job of the queue
   * @param options `dryRun`: only tells how many and which. Unset: no limit, no progress
   * @throws InvalidOption, InvalidName, NotSupported (a store without lists or `requeue`), Closed, `Store…`; what was changed by then
   *   stays changed, and `onProgress` was told where to go on
   */
  requeueAll(
    filter: RequeueFilter | undefined,
    options: DryRunOptions,
  ): Promise<BulkPreview<Stored<Data>, Stored<Result>>>
  requeueAll(filter?: RequeueFilter, options?: BulkOptions): Promise<BulkReport>
  requeueAll(filter?: RequeueFilter, options?: BulkOptions) {
    return this.#bulk({ verb: 'requeue', filter, options })
  }

  /**
   * Cancels the blocked, scheduled, waiting and running jobs that pass a filter; else as `requeueAll`. Jobs that are pushed meanwhile are
   * left alone.
   * @throws as `requeueAll`
   */
  cancelAll(
    filter: CancelFilter | undefined,
    options: DryRunOptions,
  ): Promise<BulkPreview<Stored<Data>, Stored<Result>>>
  cancelAll(filter?: CancelFilter, options?: BulkOptions): Promise<BulkReport>
  cancelAll(filter?: CancelFilter, options?: BulkOptions) {
    return this.#bulk({ verb: 'cancel', filter, options })
  }

  /**
   * Removes the jobs of a state that pass a filter, as if they had never been pushed; else as `requeueAll`.
   * @throws as `requeueAll`
   */
  removeAll(filter: RemoveFilter, options: DryRunOptions): Promise<BulkPreview<Stored<Data>, Stored<Result>>>
  removeAll(filter: RemoveFilter, options?: BulkOptions): Promise<BulkReport>
  removeAll(filter: RemoveFilter, options?: BulkOptions) {
    return this.#bulk({ verb: 'remove', filter, options })
  }

  /**
   * Scheduled jobs that pass a filter wait from now on, whatever their due time; else as `requeueAll`.
   * @throws as `requeueAll`
   */
  promoteAll(
    filter: FilterOptions | undefined,
    options: DryRunOptions,
  ): Promise<BulkPreview<Stored<Data>, Stored<Result>>>
  promoteAll(filter?: FilterOptions, options?: BulkOptions): Promise<BulkReport>
  promoteAll(filter?: FilterOptions, options?: BulkOptions) {
    return this.#bulk({ verb: 'promote', filter, options })
  }

  /**
   * Changes the priority or due time of the blocked, scheduled or waiting jobs that pass a filter; else as `requeueAll`. Jobs that have
   * both already are passed over.
   * @throws as `requeueAll`
   */
  updateAll(
    filter: UpdateFilter,
    change: UpdateAllOptions,
    options: DryRunOptions,
  ): Promise<BulkPreview<Stored<Data>, Stored<Result>>>
  updateAll(filter: UpdateFilter, change: UpdateAllOptions, options?: BulkOptions): Promise<BulkReport>
  updateAll(filter: UpdateFilter, change: UpdateAllOptions, options?: BulkOptions) {
    return this.#bulk({ verb: 'update', filter, options, change })
  }

  async #bulk(request: Omit<BulkRequestOf, 'queue'>): Promise<BulkReport | BulkPreview> {
    const store = this.#store
    const plan = bulkPlan(store, { queue: this.name, ...request })
    const { dryRun = false } = plan.options
    if (dryRun !== false) return previewBulk(store, plan)
    const report = await runBulk(store, plan)
    const { change, delay } = plan
    if (delay !== undefined) this.#pond.due(delay)
    else if (change.kind === 'update' && change.runAt) this.#pond.due(Math.max(0, change.runAt - Date.now()))
    return report
  }

  /**
   * Counts of jobs per state, and percentiles of waits and run times. The counts are those of now.
   * @param options `minutes`: how far back the percentiles look; whole minutes, 1 to 60, 5 unless given
   * @throws InvalidOption, Closed, `Store…`
   */
  async stats(options: StatsOptions = {}): Promise<QueueReport> {
    const store = this.#store
    const { minutes = 5 } = checkOptions(options, { minutes: isInteger(1, 60) }, 'stats')
    await this.#settings.send()
    const [stats] = await store.operations.stats({ queue: this.name, minutes })
    return queueReport(this.name, stats)
  }

  /**
   * How many workers the queue needs, from what its workers have measured: starts, run times and the backlog.
   * While nothing was measured, it is one worker if jobs wait.
   * @throws InvalidOption, NotSupported (a store without histograms), Closed, `Store…`
   */
  async plan(options: QueuePlanOptions = {}): Promise<QueuePlan> {
    const { minutes, options: given } = checkQueuePlan(options)
    needs(this.#store, 'histograms', 'plan')
    const [stats] = await this.#store.operations.stats({ queue: this.name, minutes })
    return queuePlan(stats, given, minutes)
  }
}
