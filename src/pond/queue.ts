import { JOB_STATES, type JobState, type NewJob, type PushOutcome, type QueueSettings, setsNothing } from '../store.ts'
import { type Backoff, backoffPolicy, computedDelay } from '../values/backoff.ts'
import { type Duration, kindOf, milliseconds, shown } from '../values/duration.ts'
import { lacking, MillpondError } from '../values/errors.ts'
import { checkId } from '../values/ids.ts'
import { type JobInfo, jobInfo } from '../values/job.ts'
import type { GroupRecord } from '../values/limits.ts'
import { checkQueueName } from '../values/names.ts'
import { checkFunction, checkOptions, defined, isDuration, isInteger, type Rules } from '../values/options.ts'
import { isStandardSchema, type StandardSchema } from '../values/schema.ts'
import type { BatchHandler } from '../worker/batch-context.ts'
import type { Handler } from '../worker/runner.ts'
import { Worker } from '../worker/worker.ts'
import type { JobReader, PondInternals } from './internals.ts'
import {
  type GroupLimitOptions,
  isLimits,
  limitGroup,
  limitSettings,
  type QueueLimitOptions,
  withLimits,
} from './limits.ts'
import { batches, bytesOf, Preparer, type Pushed, type PushManyOptions, type PushOptions } from './push.ts'
import { type QueueReport, queueReport } from './stats.ts'
import { type BatchWorkOptions, type WorkOptions, workSettings } from './work-options.ts'

export interface QueueOptions {
  /** Any Standard Schema. Data is checked on push and again before work; the handler gets the schema's output. Unset: nothing is checked. */
  schema?: StandardSchema
  /** Most scheduled and waiting jobs; at least 1. null removes the limit. Unset: no limit, in memory 100,000. Kept in the store, for every process. */
  capacity?: number | null
  /** What a push does when the queue is full: reject with `QueueFull`, or wait for room. `'reject'` unless set. Only for pushes of this process. */
  whenFull?: 'reject' | 'wait'
  /**
   * `attempts`: how often a job is tried, the first attempt included; 1 to 1,000,000, 10 unless set. `backoff`: the delay before the next attempt;
   * `'exponential'` unless set. Both are kept in the store, for every process and language. A `backoff` that is a function is not: only workers
   * of this process call it.
   */
  retry?: { attempts?: number; backoff?: Backoff }
  /** A worker that is silent for longer loses the job. 50 ms to 24 days, 30 s unless set. Kept in the store. */
  lease?: Duration
  /** How long an attempt may run, for jobs pushed without a `timeout`. 1 ms to 24 days; null: no limit, as when unset. Kept in the store. */
  timeout?: Duration | null
  /**
   * How long finished jobs stay in the store. `done`: 1 h unless set. `dead`: 7 d unless set; also for cancelled jobs. Each 0 to 100 years;
   * 0: not at all. Kept in the store.
   */
  keep?: { done?: Duration; dead?: Duration }
  /**
   * How many jobs may run at once and start in a time, over all workers; the same for each group, and groups take turns. Kept in the store.
   * What is left out is no limit. Unset: the limits stay as they are. A store without limits (`capabilities.limits`) rejects them with `NotSupported`.
   */
  limits?: QueueLimitOptions
}

const QUEUE_RULES: Rules<QueueOptions> = {
  schema: isStandardSchema,
  capacity: (value) => value === null || isInteger(1, Number.MAX_SAFE_INTEGER)(value),
  whenFull: (value) => value === 'reject' || value === 'wait' || "'reject' or 'wait'",
  retry: (value) => checkOptions(value as NonNullable<QueueOptions['retry']>, RETRY_RULES, 'retry') !== undefined,
  lease: isDuration(50),
  timeout: (value) => value === null || isDuration()(value, 'timeout'),
  keep: (value) => checkOptions(value as NonNullable<QueueOptions['keep']>, KEEP_RULES, 'keep') !== undefined,
  limits: isLimits,
}
const RETRY_RULES: Rules<NonNullable<QueueOptions['retry']>> = {
  attempts: isInteger(1, 1_000_000),
  backoff: () => true,
}
const KEEP_RULES: Rules<NonNullable<QueueOptions['keep']>> = {
  done: (value) => milliseconds(value, 'keep.done') >= 0,
  dead: (value) => milliseconds(value, 'keep.dead') >= 0,
}
/**
 * One queue of a pond. Cheap: make it wherever it is needed.
 *
 * `Store…` in a list of errors stands for StoreUnavailable, StoreBusy, StoreFull, StoreCorrupt and StoreFailed.
 */
export class Queue<Input = unknown, Output = Input> {
  readonly name: string
  readonly #pond: PondInternals
  readonly #options: QueueOptions
  readonly #preparer: Preparer
  /** Where this process computes the delays of its failures itself. */
  readonly #backoff: ((attempt: number, error: unknown) => number) | undefined
  /** What the store does not know of the queue yet. */
  #settings: QueueSettings | undefined
  /** Settles when the store has been told. */
  #configuring: Promise<void> | undefined

  /** @internal */
  constructor(pond: PondInternals, name: unknown, options: QueueOptions | undefined) {
    this.name = checkQueueName(name)
    this.#pond = pond
    this.#options = checkOptions(options, QUEUE_RULES, `queue ${this.name}`)
    const { limits, retry, schema } = this.#options
    if (limits !== undefined) withLimits(pond.store, `limits of queue ${this.name}`)
    this.#backoff = typeof retry?.backoff === 'function' ? computedDelay(retry.backoff) : undefined
    this.#preparer = new Preparer(this.name, pond, schema, limitSettings(limits))
    this.#settings = settingsOf(this.name, this.#options)
    this.#ready()
    if (this.#options.whenFull === 'wait') pond.capacityWaiters.listen()
  }

  /** The pond of this queue: there its jobs and their results are read. */
  get pond(): JobReader {
    return this.#pond.pond
  }

  /**
   * Resolves when the store has the job.
   *
   * If it rejects, the job was not stored, with one exception: after `StoreUnavailable` only the answer may have been lost. To repeat such a
   * push safely, give it an `id` and push again with the same one.
   * @throws SchemaMismatch, PayloadNotEncodable, PayloadTooLarge, InvalidOption, InvalidName, NotSupported (`tx` on a store without
   * transactions), TransactionMismatch, QueueFull, Closed, `Store…`
   */
  push(data: Input, options?: PushOptions): Promise<Pushed> {
    try {
      this.#pond.assertOpen()
      const job = this.#preparer.prepare(data, options)
      const tx = options?.tx
      if (job instanceof Promise) return this.#pond.pending(job.then((checked) => this.#push(checked, tx)))
      return this.#push(job, tx)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /**
   * Pushes many jobs, in order. Items, data and options are read before the call returns. All are checked before any is stored. They are stored in batches of at most 500 jobs or 1 MiB, so the call can
   * fail midway: the error's `pushed` is then how many jobs, counted from the first, the store has. To repeat such a call safely, give each
   * job its own `id` by `each`.
   * @throws as `push`
   */
  async pushMany(items: readonly Input[], options?: PushManyOptions<Input>): Promise<Pushed[]> {
    this.#pond.assertOpen()
    return this.#pond.pending(this.#pushMany(items, options))
  }

  async #pushMany(items: readonly Input[], options?: PushManyOptions<Input>): Promise<Pushed[]> {
    if (!Array.isArray(items)) throw new MillpondError('InvalidOption', `pushMany takes an array; got ${kindOf(items)}`)
    const tx = options?.tx
    const prepared = await this.#preparer.prepareMany(items, options)
    const pushed: Pushed[] = []
    for (const batch of batches(prepared)) {
      try {
        await this.#ready()
        if (tx !== undefined) pushed.push(...(await this.#pushInside(tx, batch)))
        else await this.#pushBatch(batch, pushed)
      } catch (error) {
        if (!(error instanceof MillpondError)) throw error
        throw new MillpondError(error.code, error.message, { cause: error, queue: this.name, pushed: pushed.length })
      }
    }
    return pushed
  }

  /**
   * Starts a worker, which runs until it is closed. With the option `batch` the handler gets several jobs at once.
   * @throws InvalidOption, NotSupported (`lanes`, `transaction` or `replica` on a store without them), Closed
   */
  work(handler: BatchHandler<Output>, options: BatchWorkOptions): Worker
  work(handler: Handler<Output>, options?: WorkOptions): Worker
  work(handler: Handler<Output> | BatchHandler<Output>, options?: WorkOptions | BatchWorkOptions): Worker {
    this.#pond.assertClaiming()
    checkFunction(handler, 'work takes a function as handler')
    const { store, events, maxPayload } = this.#pond
    const settings = {
      queue: this.name,
      ...workSettings(this.name, options, milliseconds(this.#options.lease ?? '30s', 'lease'), store, events),
      maxPayload,
      schema: this.#options.schema,
      backoff: this.#backoff,
    }
    const ready = () => this.#ready()
    // The schema, where there is one, has made the data an Output; where there is none, the caller has said what it is.
    const worker = new Worker(store, settings, handler as Handler | BatchHandler, events, ready, this.#pond)
    this.#pond.addWorker(worker)
    return worker
  }

  /** Stops claims in every process until `resume`. Pushes go on, and running jobs finish. Kept in the store. @throws Closed, `Store…` */
  async pause(): Promise<void> {
    await this.#pond.store.configure({ queue: this.name, paused: true })
  }

  /** Allows claims again, in every process. @throws Closed, `Store…` */
  async resume(): Promise<void> {
    await this.#pond.store.configure({ queue: this.name, paused: false })
  }

  /**
   * Gives a group limits of its own, instead of those that the queue has for its groups, and a weight. Kept in the store. Groups take turns from then on.
   * @param group the jobs without a group: `''`
   * @param limits what is left out is as the queue has it; null: all of it
   * @throws InvalidOption, InvalidName, NotSupported (a store without limits), Closed, `Store…`
   */
  async limitGroup(group: string, limits: GroupLimitOptions | null): Promise<void> {
    this.#pond.assertOpen()
    await this.#ready()
    await limitGroup(this.#pond.store, this.name, group, limits)
  }

  /**
   * The groups that have waiting or running jobs or limits of their own, by name, a page at a time. Empty if groups do not take turns here.
   * @param options `limit`: 1 to 1,000, 100 unless given. `after`: the last name of the page before.
   * @throws InvalidOption, NotSupported (a store without limits), Closed, `Store…`
   */
  async groups(options: { limit?: number; after?: string } = {}): Promise<GroupRecord[]> {
    this.#pond.assertOpen()
    const rules = { limit: isInteger(1, 1000), after: (value: unknown) => typeof value === 'string' || 'a name' }
    const { limit = 100, after } = checkOptions(options, rules, 'groups')
    await this.#ready()
    return withLimits(this.#pond.store, 'groups').groups({ queue: this.name, limit, ...defined({ after }) })
  }

  /**
   * Jobs in one state, a page at a time: waiting jobs by priority, then oldest first, scheduled jobs by due time, running jobs by the end of their
   * lease, finished jobs newest first.
   * @param options `limit`: 1 to 1,000, 100 unless given. `after`: the last id of the page before.
   * @throws InvalidOption, InvalidName, Closed, `Store…`
   */
  async jobs(state: JobState, options: { limit?: number; after?: string } = {}): Promise<JobInfo[]> {
    const rules: Rules<typeof options> = { limit: isInteger(1, 1000), after: (value) => checkId(value) !== '' }
    const { limit = 100, after } = checkOptions(options, rules, 'jobs')
    if (!JOB_STATES.includes(state)) {
      throw new MillpondError('InvalidOption', `state is one of ${JOB_STATES.join(', ')}; got ${shown(state)}`)
    }
    const records = await this.#pond.store.admin.list({ queue: this.name, state, limit, ...defined({ after }) })
    return records.map(jobInfo)
  }

  /**
   * Sends dead or cancelled jobs back to waiting, with all their attempts. A job that dies again meanwhile is not sent back again.
   * @param ids the jobs, as an array: `requeue([id])` for one. Unset: every dead job of the queue.
   * @returns how many were requeued. A job whose key a live job has by now is not.
   * @throws InvalidOption, InvalidName, Closed, `Store…`
   */
  async requeue(ids?: readonly string[]): Promise<number> {
    const { admin } = this.#pond.store
    if (ids !== undefined) {
      if (Array.isArray(ids)) return (await admin.requeue({ ids: ids.map(checkId) })).requeued
      const what = 'an array of ids, as in requeue([id]), or nothing for every dead job of the queue'
      throw new MillpondError('InvalidOption', `requeue takes ${what}; got ${kindOf(ids)}`)
    }
    let total = 0
    let until: number | undefined
    for (;;) {
      const { requeued, now } = await admin.requeue({ queue: this.name, limit: 1000, ...defined({ until }) })
      until ??= now
      total += requeued
      if (requeued < 1000) return total
    }
  }

  /**
   * Counts of jobs per state, and percentiles of waits and run times. The counts are those of now.
   * @param options `minutes`: how far back the percentiles look; whole minutes, 1 to 60, 5 unless given
   * @throws InvalidOption, Closed, `Store…`
   */
  async stats(options: { minutes?: number } = {}): Promise<QueueReport> {
    const { minutes = 5 } = checkOptions(options, { minutes: isInteger(1, 60) }, 'stats')
    await this.#ready()
    const [stats] = await this.#pond.store.stats({ queue: this.name, minutes })
    return queueReport(this.name, stats)
  }

  /** Settles when the store knows the queue's settings; undefined if it knows them already. After a failure the next call tries again. */
  #ready(): Promise<void> | undefined {
    if (this.#settings === undefined || this.#configuring !== undefined) return this.#configuring
    this.#configuring = this.#pond.store.configure(this.#settings)
    // Pushes that wait for the settings are the next reactions of this promise, so that no later push overtakes them.
    this.#configuring.then(
      () => {
        this.#configuring = undefined
        this.#settings = undefined
      },
      () => {
        this.#configuring = undefined
      },
    )
    return this.#configuring
  }

  #push(job: NewJob, tx: unknown): Promise<Pushed> {
    if (tx !== undefined) return this.#pushInside(tx, [job]).then(([pushed]) => pushed as Pushed)
    const ready = this.#ready()
    return ready === undefined ? this.#add(job) : this.#pond.pending(ready.then(() => this.#add(job)))
  }

  #add(job: NewJob, call?: object): Promise<Pushed> {
    const { capacityWaiters, pusher } = this.#pond
    if (this.#options.whenFull !== 'wait') return pusher.add({ job, outcomeOf: this.#outcomeOf }, bytesOf(job))
    return capacityWaiters.push(job, call).then((outcome) => this.#pushed(job, outcome))
  }

  readonly #outcomeOf = (job: NewJob, { id, status, error }: PushOutcome): Pushed | MillpondError => {
    if (error !== undefined) return error
    if (status === 'full') {
      this.#pond.events.emit('full', { queue: this.name })
      return this.#queueFull()
    }
    const existing = status === 'existing'
    this.#pond.pushed(job, id, existing)
    return { id, existing }
  }

  /** @throws QueueFull */
  #pushed(job: NewJob, outcome: PushOutcome): Pushed {
    const pushed = this.#outcomeOf(job, outcome)
    if (pushed instanceof MillpondError) throw pushed
    return pushed
  }

  /** @param pushed filled with the stored jobs, in order, up to the first one that was not stored */
  async #pushBatch(batch: NewJob[], pushed: Pushed[]): Promise<void> {
    if (this.#options.whenFull === 'wait') {
      const added = await Promise.allSettled(batch.map((job) => this.#add(job, batch)))
      for (const each of added) {
        if (each.status === 'rejected') throw each.reason
        pushed.push(each.value)
      }
    } else {
      const outcomes = await this.#pond.store.push(batch)
      let index = 0
      for (const job of batch) pushed.push(this.#pushed(job, outcomes[index++] as PushOutcome))
    }
  }

  async #pushInside(tx: unknown, jobs: NewJob[]): Promise<Pushed[]> {
    const { store } = this.#pond
    if (store.transactions === undefined) throw lacking('tx', 'transactions', store)
    if (!store.transactions.takesSettings) await this.#ready()
    const outcomes = await store.transactions.push(tx, jobs, this.#settings)
    if (outcomes.some(({ status }) => status === 'full')) throw this.#queueFull()
    return outcomes.map(({ id, status }) => ({ id, existing: status === 'existing' }))
  }

  #queueFull(): MillpondError {
    const message = `queue ${this.name} is full; push again later, or open it with whenFull: 'wait'`
    return new MillpondError('QueueFull', message, { queue: this.name })
  }
}

/** The settings that the store keeps; undefined where none is given. @throws InvalidOption */
function settingsOf(queue: string, options: QueueOptions): QueueSettings | undefined {
  const { capacity, keep, lease, limits, retry, timeout } = options
  const backoff = retry?.backoff
  const ms = (value: Duration | undefined, name: string) =>
    value === undefined ? undefined : milliseconds(value, name)
  const settings: QueueSettings = {
    queue,
    ...limitSettings(limits),
    ...defined({
      capacity,
      keepDone: ms(keep?.done, 'keep.done'),
      keepDead: ms(keep?.dead, 'keep.dead'),
      attempts: retry?.attempts,
      backoff: backoff === undefined || typeof backoff === 'function' ? undefined : backoffPolicy(backoff),
      lease: ms(lease, 'lease'),
      timeout: timeout === null ? null : ms(timeout, 'timeout'),
    }),
  }
  return setsNothing(settings) ? undefined : settings
}
