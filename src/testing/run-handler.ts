/** Calls a handler once, without a pond. The runner is the worker's own, so an answer or error means what it means in production. */

import type { ClaimedJob, JobError, ReplicaQuery, TransactionQuery } from '../store.ts'
import { DEFAULTS } from '../values/contract-defaults.ts'
import { type Duration, milliseconds } from '../values/duration.ts'
import { decode, encode, LARGEST_PAYLOAD, MAX_PAYLOAD } from '../values/encoding.ts'
import { MillpondError } from '../values/errors.ts'
import { checkId, newId } from '../values/ids.ts'
import { type LogLine, readLogLine } from '../values/job-log.ts'
import { checkKey, checkQueueName } from '../values/names.ts'
import {
  checkFunction,
  checkOptions,
  isDuration,
  isFunction,
  isInteger,
  isSignal,
  type Rules,
} from '../values/options.ts'
import { hasTag, isError } from '../values/realms.ts'
import { isStandardSchema, type StandardSchema } from '../values/schema.ts'
import type { Stored } from '../values/stored.ts'
import { Attempt } from '../worker/attempt.ts'
import type { Ending } from '../worker/ending.ts'
import type { Outcome } from '../worker/outcome.ts'
import { runnerTools } from '../worker/runner.ts'
import { type Handler, singleRunner } from '../worker/single-runner.ts'
import { type TestParent, testParents } from './parents.ts'

/** What the handler's job and context show. */
export interface RunHandlerOptions {
  /** The name of the queue; `test` unless given. */
  queue?: string | undefined
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
  /** The queue's schema: the data is validated first, as a worker does. */
  schema?: StandardSchema | undefined
  /** Aborting it is as if the job were cancelled: `ctx.signal` is aborted with its reason, and the report's outcome is `stopped`. */
  signal?: AbortSignal | undefined
  /** As of a queue: after so long, in real time, the attempt has failed with `TimedOut`. */
  timeout?: Duration | undefined
  /** Stands for `ctx.tx`. What it did is the caller's to commit or roll back. */
  tx?: TransactionQuery | undefined
  /** Stands for `ctx.replica`. */
  replica?: TransactionQuery | undefined
  /** What `ctx.parents` resolves to; none unless given. */
  parents?: readonly TestParent[] | undefined
  /** As in `Millpond.open`. */
  maxPayload?: number | undefined
}

/** How the attempt would have ended, and what the store would have been told. */
export interface HandlerReport<Result = unknown> {
  /**
   *   done         the job is done, with `result`
   *   retry        the attempt has failed, and another follows after `delay`
   *   dead         the attempt has failed, and no other follows
   *   rateLimited  the job waits again, and its group or queue starts no job for `delay`
   *   stopped      `signal` was aborted first
   */
  outcome: 'done' | 'retry' | 'dead' | 'rateLimited' | 'stopped'
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
}

const RULES: Rules<RunHandlerOptions> = {
  queue: (value) => checkQueueName(value) !== '',
  id: (value) => checkId(value) !== '',
  attempt: isInteger(1, Number.MAX_SAFE_INTEGER),
  attempts: isInteger(1, Number.MAX_SAFE_INTEGER),
  priority: isInteger(0, 9),
  key: (value) => checkKey(value, 'key') !== '',
  group: (value) => checkKey(value, 'group') !== '',
  pushedAt: (value) => hasTag(value, 'Date') || 'a Date',
  schema: isStandardSchema,
  signal: isSignal,
  timeout: isDuration(),
  tx: isFunction,
  replica: isFunction,
  parents: (value) => Array.isArray(value) || 'an array of parents',
  maxPayload: isInteger(1, LARGEST_PAYLOAD),
}

/**
 * Calls the handler with a job of this data and a context. The data and the result are encoded and decoded, as through a store.
 * @returns how the attempt ends; what the handler throws is in the report
 * @throws InvalidOption, InvalidName, PayloadNotEncodable, PayloadTooLarge (of the data)
 */
export async function runHandler<Data, Result>(
  handler: Handler<Data, Result>,
  data: NoInfer<Data>,
  options: RunHandlerOptions = {},
): Promise<HandlerReport<Exclude<Awaited<Result>, Outcome>>> {
  checkFunction(handler, 'runHandler takes a function as handler')
  const {
    queue = 'test',
    schema,
    signal,
    tx,
    replica,
    maxPayload = MAX_PAYLOAD,
  } = checkOptions(options, RULES, 'runHandler')
  const parents = testParents(options.parents ?? [], maxPayload)
  const attempt = new Attempt(claimOf(data, options, maxPayload), {
    now: Date.now(),
    at: performance.now(),
    heldUntil: Number.POSITIVE_INFINITY,
  })
  const progress: unknown[] = []
  const log: LogLine[] = []
  const terms = {
    maxPayload,
    reportSoon: () => {
      if (attempt.unreported !== null) progress.push(decode(attempt.unreported, 'progress'))
    },
    logSoon: () => {
      const line = attempt.unsentLog?.lines.at(-1)
      if (line !== undefined) log.push(readLogLine(line))
    },
    assertRates: () => {},
    parents: async () => parents.map((parent) => ({ ...parent })),
  }
  const reads = replica === undefined ? undefined : { wait: async () => readsOf(replica) }
  const settings = { queue, maxPayload, backoff: undefined, transaction: tx !== undefined, schema, replica: reads }
  const told = { trouble: () => {}, failure: () => {} }
  attempt.start(performance.now())
  return new Promise((resolve) => {
    const end = ([ending]: readonly Ending[]) => {
      if (ending !== undefined)
        resolve({ ...reportOf(ending, maxPayload), progress, log } as HandlerReport<Exclude<Awaited<Result>, Outcome>>)
    }
    const stop = () => {
      attempt.deadline?.cancel()
      attempt.stop(stoppedBy(signal?.reason))
      resolve({ outcome: 'stopped', result: undefined, error: undefined, delay: undefined, progress, log })
    }
    const tools = runnerTools({ transactions: tx && { begin: () => transactionOf(tx) } }, settings, terms, told, end)
    // The runner knows no types of payloads.
    singleRunner(tools, handler as Handler)(attempt)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}

function claimOf(data: unknown, options: RunHandlerOptions, maxPayload: number): ClaimedJob {
  const { id = newId(), attempt = 1, key = null, group = null, pushedAt = new Date(), timeout } = options
  const attempts = options.attempts ?? Math.max(attempt, DEFAULTS.queue.attempts)
  if (attempts < attempt) {
    throw new MillpondError('InvalidOption', `runHandler: attempt ${attempt} is beyond attempts, which is ${attempts}`)
  }
  return {
    ...{ id, attempt, attempts, key, group, fence: attempt, trace: null },
    priority: options.priority ?? DEFAULTS.job.priority,
    timeout: timeout === undefined ? null : milliseconds(timeout, 'timeout'),
    pushedAt: pushedAt.getTime(),
    dueAt: pushedAt.getTime(),
    data: encode(data, 'data', maxPayload),
  }
}

function reportOf(ending: Ending, maxPayload: number): Omit<HandlerReport, 'progress' | 'log'> {
  const nothing = { result: undefined, error: undefined, delay: undefined }
  switch (ending.kind) {
    case 'complete':
    case 'committed': {
      const { value } = ending
      const result = value === undefined ? undefined : decode(encode(value, 'result', maxPayload), 'result')
      return { ...nothing, outcome: 'done', result }
    }
    case 'release':
      return { ...nothing, outcome: 'rateLimited', delay: ending.pause }
    case 'fail': {
      const { attempt, attempts } = ending.attempt.claimed
      const { error, delay } = ending
      if (delay === null || attempt >= attempts) return { ...nothing, outcome: 'dead', error }
      return { ...nothing, outcome: 'retry', error, delay }
    }
  }
}

function transactionOf(query: TransactionQuery) {
  return { query, complete: async () => ['ok' as const], rollback: async () => {} }
}

function readsOf(query: TransactionQuery): ReplicaQuery {
  return Object.assign((text: string, params?: readonly unknown[]) => query(text, params), { primary: false })
}

function stoppedBy(reason: unknown): MillpondError {
  if (reason instanceof MillpondError) return reason
  const message = 'the signal given to runHandler was aborted'
  return new MillpondError('JobCancelled', message, isError(reason) ? { cause: reason } : {})
}
