/**
 * Attempts without a pond: the jobs that a handler is shown, what it tells of them meanwhile, and how they end. The runner is the worker's
 * own, so an answer or error means what it means in production.
 */

import type { ReplicaQuery, TransactionQuery } from '../store.ts'
import { decode, encode, LARGEST_PAYLOAD, MAX_PAYLOAD } from '../values/encoding/encoding.ts'
import { isStandardSchema, type StandardSchema } from '../values/encoding/schema.ts'
import type { Stored } from '../values/encoding/stored.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { checkId, newId } from '../values/jobs/ids.ts'
import { type LogLine, readLogLine } from '../values/jobs/job-log.ts'
import type { ParentJob } from '../values/jobs/parent-jobs.ts'
import type { ClaimedJob, JobError } from '../values/jobs/records.ts'
import { isDuration, isFunction, isInteger, isSignal, type Rules } from '../values/options/options.ts'
import { hasTag, isError } from '../values/runtime/realms.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { checkKey, checkQueueName } from '../values/settings/names.ts'
import { type Duration, milliseconds } from '../values/time/duration.ts'
import { Attempt } from '../worker/attempt.ts'
import type { Ending } from '../worker/ending.ts'
import { type RunnerTools, runnerTools } from '../worker/runner.ts'
import type { StepCalls } from '../worker/steps/journal-calls.ts'
import { type TestParent, testParents } from './parents.ts'
import { type TestStep, TestSteps, type TestWait, waitsOf } from './test-steps.ts'

/** What a job and its context show. */
export interface TestJobOptions {
  /** A new id unless given. */
  id?: string | undefined
  /** Which attempt this is; 1 unless given. */
  attempt?: number | undefined
  /** How many attempts the job may take; 10 unless given, as of a queue, and at least `attempt`. */
  attempts?: number | undefined
  priority?: number | undefined
  key?: string | undefined
  group?: string | undefined
  /** When the job was pushed; now unless given. */
  pushedAt?: Date | undefined
  /** Aborting it is as if the job were cancelled: `ctx.signal` is aborted with its reason, and the report's outcome is `stopped`. */
  signal?: AbortSignal | undefined
  /** As of a queue: after so long, in real time, the attempt has failed with `TimedOut`. */
  timeout?: Duration | undefined
  /** What `ctx.parents` resolves to; none unless given. */
  parents?: readonly TestParent[] | undefined
  /** What earlier attempts have kept of the job's steps; nothing by default. */
  steps?: readonly TestStep[] | undefined
}

/** What the jobs of a call have in common. */
export interface TrialOptions {
  /** The name of the queue; `test` unless given. */
  queue?: string | undefined
  /** The queue's schema: the data is validated first, as a worker does. */
  schema?: StandardSchema | undefined
  /** Stands for `ctx.tx`. What it did is the caller's to commit or roll back. */
  tx?: TransactionQuery | undefined
  /** As in `Millpond.open`. */
  maxPayload?: number | undefined
}

export const JOB_RULES: Rules<TestJobOptions> = {
  id: (value) => checkId(value) !== '',
  attempt: isInteger(1, Number.MAX_SAFE_INTEGER),
  attempts: isInteger(1, Number.MAX_SAFE_INTEGER),
  priority: isInteger(0, 9),
  key: (value) => checkKey(value, 'key') !== '',
  group: (value) => checkKey(value, 'group') !== '',
  pushedAt: (value) => hasTag(value, 'Date') || 'a Date',
  signal: isSignal,
  timeout: isDuration(),
  parents: (value) => Array.isArray(value) || 'an array of parents',
  steps: (value) => Array.isArray(value) || 'an array of steps',
}

export const TRIAL_RULES: Rules<TrialOptions> = {
  queue: (value) => checkQueueName(value) !== '',
  schema: isStandardSchema,
  tx: isFunction,
  maxPayload: isInteger(1, LARGEST_PAYLOAD),
}

/** How the attempt would have ended, and what the store would have been told. */
export interface HandlerReport<Result = unknown> {
  /**
   *   done         the job is done, with `result`
   *   retry        the attempt has failed, and another follows after `delay`
   *   dead         the attempt has failed, and no other follows
   *   rateLimited  the job waits again, and its group or queue starts no job for `delay`
   *   released     of a batch with `tx`: the job waits again, and no attempt is counted, as another job of the batch could not be committed
   *   parked       the job waits for what `waits` says, without a worker
   *   stopped      `signal` was aborted first
   */
  outcome: 'done' | 'retry' | 'dead' | 'rateLimited' | 'released' | 'parked' | 'stopped'
  /** What the handler returned, as it is stored: a Date is its ISO text. */
  result: Stored<Result> | undefined
  /** What is stored of the error. */
  error: JobError | undefined
  /** Milliseconds; `backoff`: as the queue's backoff says; undefined: neither `retry` nor `rateLimited`. */
  delay: number | 'backoff' | undefined
  /** Every progress report, as it is stored. */
  progress: unknown[]
  /** Every line of `ctx.log`. */
  log: LogLine[]
  /** What the steps of this run came to, by their names, as it is stored. */
  steps: Record<string, unknown>
  /** What a parked job waits for; empty otherwise. */
  waits: TestWait[]
}

/** A job that the handler is to be given. */
export interface TestJob {
  data: unknown
  options: TestJobOptions
}

/** Of one attempt. */
interface Told {
  progress: unknown[]
  log: LogLine[]
  parents: readonly ParentJob[]
  steps: TestSteps
  report: PromiseWithResolvers<HandlerReport>
}

export class Trial {
  readonly attempts: readonly Attempt[]
  readonly tools: RunnerTools
  readonly #told = new Map<Attempt, Told>()
  readonly #open: Set<Attempt>
  readonly #signals = new Map<AbortSignal, Attempt[]>()
  readonly #maxPayload: number

  /**
   * @param reads stands for `ctx.replica`
   * @throws InvalidOption, InvalidName, PayloadNotEncodable, PayloadTooLarge
   */
  constructor(jobs: readonly TestJob[], options: TrialOptions, reads?: TransactionQuery) {
    const { queue = 'test', schema, tx, maxPayload = MAX_PAYLOAD } = options
    this.#maxPayload = maxPayload
    const arrival = { now: Date.now(), at: performance.now(), heldUntil: Number.POSITIVE_INFINITY }
    this.attempts = jobs.map(({ data, options }) => {
      const attempt = new Attempt(claimOf(data, options, maxPayload), arrival)
      const parents = testParents(options.parents ?? [], maxPayload)
      const steps = new TestSteps(options.steps ?? [], maxPayload)
      this.#told.set(attempt, { progress: [], log: [], parents, steps, report: Promise.withResolvers() })
      const { signal } = options
      if (signal !== undefined) this.#signals.set(signal, [...(this.#signals.get(signal) ?? []), attempt])
      return attempt
    })
    this.#open = new Set(this.attempts)
    const terms = {
      maxPayload,
      reportSoon: () => this.#takeProgress(),
      logSoon: () => this.#takeLines(),
      assertRates: () => {},
      parents: async (id: string) => this.#parentsOf(id),
      steps: (attempt: Attempt) => this.#stepsOf(attempt),
    }
    const replica = reads === undefined ? undefined : { wait: async () => readsOf(reads) }
    const settings = { queue, maxPayload, backoff: undefined, transaction: tx !== undefined, schema, replica }
    const begin = tx && { begin: () => transactionOf(tx) }
    const told = { trouble: () => {}, failure: () => {} }
    this.tools = runnerTools({ transactions: begin }, settings, terms, told, (endings) => this.#end(endings))
  }

  /** @param run begins with the attempts @returns in the order of the jobs */
  async run(run: () => void): Promise<HandlerReport[]> {
    for (const attempt of this.attempts) attempt.start(performance.now())
    run()
    for (const [signal, attempts] of this.#signals) {
      const stop = () => {
        for (const attempt of attempts) this.#stop(attempt, signal.reason)
      }
      if (signal.aborted) stop()
      else signal.addEventListener('abort', stop, { once: true })
    }
    return Promise.all([...this.#told.values()].map(({ report }) => report.promise))
  }

  #end(endings: readonly Ending[]): void {
    for (const ending of endings) this.#report(ending.attempt, reportOf(ending, this.#maxPayload))
  }

  #stop(attempt: Attempt, reason: unknown): void {
    if (!this.#open.has(attempt)) return
    attempt.deadline?.cancel()
    attempt.stop(stoppedBy(reason))
    this.#report(attempt, { ...NOTHING, outcome: 'stopped' })
  }

  #report(attempt: Attempt, report: Ended): void {
    if (!this.#open.delete(attempt)) return
    attempt.batch?.left(attempt)
    const told = this.#told.get(attempt)
    told?.report.resolve({ ...report, progress: told.progress, log: told.log, steps: told.steps.kept })
  }

  #takeProgress(): void {
    for (const [attempt, { progress }] of this.#told) {
      const { unreported } = attempt
      attempt.unreported = null
      if (unreported !== null) progress.push(decode(unreported, 'progress'))
    }
  }

  #takeLines(): void {
    for (const [attempt, { log }] of this.#told) {
      const lines = attempt.unsentLog?.lines ?? []
      attempt.unsentLog = undefined
      log.push(...lines.map(readLogLine))
    }
  }

  #stepsOf(attempt: Attempt): StepCalls {
    const steps = this.#told.get(attempt)?.steps ?? new TestSteps([], this.#maxPayload)
    return steps.calls(() => attempt.storeTime)
  }

  #parentsOf(id: string): ParentJob[] {
    const [, told] = [...this.#told].find(([{ claimed }]) => claimed.id === id) ?? []
    return (told?.parents ?? []).map((parent) => ({ ...parent }))
  }
}

function claimOf(data: unknown, options: TestJobOptions, maxPayload: number): ClaimedJob {
  const { id = newId(), attempt = 1, key = null, group = null, pushedAt = new Date(), timeout } = options
  const attempts = options.attempts ?? Math.max(attempt, DEFAULTS.queue.attempts)
  if (attempts < attempt) {
    throw new MillpondError(
      'InvalidOption',
      `a job of a test: attempt ${attempt} is beyond attempts, which is ${attempts}`,
    )
  }
  return {
    ...{ id: id.toLowerCase(), attempt, attempts, key, group, fence: attempt, trace: null },
    priority: options.priority ?? DEFAULTS.job.priority,
    timeout: timeout === undefined ? null : milliseconds(timeout, 'timeout'),
    pushedAt: pushedAt.getTime(),
    dueAt: pushedAt.getTime(),
    data: encode(data, 'data', maxPayload),
  }
}

type Ended = Omit<HandlerReport, 'progress' | 'log' | 'steps'>
const NOTHING = { result: undefined, error: undefined, delay: undefined, waits: [] }

function reportOf(ending: Ending, maxPayload: number): Ended {
  switch (ending.kind) {
    case 'complete':
    case 'committed': {
      const { value } = ending
      const result = value === undefined ? undefined : decode(encode(value, 'result', maxPayload), 'result')
      return { ...NOTHING, outcome: 'done', result }
    }
    case 'release': {
      const { pause = 0, park } = ending
      if (park !== undefined) return { ...NOTHING, outcome: 'parked', waits: waitsOf(park.reason) }
      // A handler's own pause is at least 1 ms.
      return pause === 0 ? { ...NOTHING, outcome: 'released' } : { ...NOTHING, outcome: 'rateLimited', delay: pause }
    }
    case 'fail': {
      const { attempt, attempts } = ending.attempt.claimed
      const { error, delay } = ending
      if (delay === null || attempt >= attempts) return { ...NOTHING, outcome: 'dead', error }
      return { ...NOTHING, outcome: 'retry', error, delay }
    }
  }
}

function transactionOf(query: TransactionQuery) {
  return {
    query,
    complete: async ({ items }: { items: readonly unknown[] }) => items.map(() => 'ok' as const),
    journal: async ({ items }: { items: readonly unknown[] }) => items.map(() => 'ok' as const),
    rollback: async () => {},
  }
}

function readsOf(query: TransactionQuery): ReplicaQuery {
  return Object.assign((text: string, params?: readonly unknown[]) => query(text, params), { primary: false })
}

function stoppedBy(reason: unknown): MillpondError {
  if (reason instanceof MillpondError) return reason
  const message = 'the signal given to the test was aborted'
  return new MillpondError('JobCancelled', message, isError(reason) ? { cause: reason } : {})
}
