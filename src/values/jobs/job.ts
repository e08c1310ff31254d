import { decode, isNestedTooDeep } from '../encoding/encoding.ts'
import { isNotDecodable, MillpondError } from '../errors/errors.ts'
import { isError } from '../runtime/realms.ts'
import { LAST_MOMENT } from '../time/duration.ts'
import { type LogLine, readLogLine } from './job-log.ts'
import type { ClaimedJob, Encoded, JobError, JobRecord, Unique } from './records.ts'
import { type StepInfo, type StepWait, waitsFrom } from './step-info.ts'

/** What a handler sees of a claim beside the data. */
export type JobFacts = Pick<
  ClaimedJob,
  'id' | 'priority' | 'attempt' | 'attempts' | 'key' | 'group' | 'fence' | 'trace' | 'pushedAt' | 'dueAt' | 'headers'
>

/** What a handler is given. */
export class Job<Data = unknown> {
  readonly id: string
  readonly queue: string
  /** As pushed, or as the queue's schema puts it out. */
  readonly data: Data
  /** 0–9, higher first. */
  readonly priority: number
  /** Which attempt this is, from 1. */
  readonly attempt: number
  /** How many attempts the job may take in all. */
  readonly attempts: number
  readonly key: string | null
  readonly group: string | null
  /** Names this claim of the job; greater at every claim. Hand it to systems that can refuse writes with an older one. */
  readonly fence: number
  /** W3C trace context of the push. */
  readonly trace: string | null
  readonly #pushedAt: number
  readonly #dueAt: number
  readonly #headers: Readonly<Record<string, unknown>> | undefined

  constructor(queue: string, claimed: JobFacts, data: Data) {
    this.id = claimed.id
    this.queue = queue
    this.data = data
    this.priority = claimed.priority
    this.attempt = claimed.attempt
    this.attempts = claimed.attempts
    this.key = claimed.key
    this.group = claimed.group
    this.fence = claimed.fence
    this.trace = claimed.trace
    this.#pushedAt = claimed.pushedAt
    this.#dueAt = claimed.dueAt
    this.#headers = claimed.headers
  }

  /** When it was first pushed, by the store's clock. */
  get pushedAt(): Date {
    return new Date(this.#pushedAt)
  }

  /** When this attempt was due, by the store's clock. */
  get dueAt(): Date {
    return new Date(this.#dueAt)
  }

  /** Of a message that another program published to RabbitMQ: its headers, and its properties by their AMQP names. Else null. */
  get headers(): Readonly<Record<string, unknown>> | null {
    return this.#headers ?? null
  }
}

/** The parts of a job that are stored encoded. */
export type JobPart = 'data' | 'progress' | 'result'

type Time = 'pushedAt' | 'dueAt' | 'startedAt' | 'finishedAt'

/** All there is to know about a job; times are the store's. */
export interface JobInfo<Data = unknown, Result = unknown>
  extends Omit<JobRecord, JobPart | Time | 'log' | 'after' | 'unique' | 'journal' | 'parked' | 'entries'> {
  /** What its start takes of a rate. */
  cost: number
  /** For how many ms its key is remembered, and from when; unset: only while the job is live. */
  once?: Unique
  pushedAt: Date
  dueAt: Date
  startedAt: Date | null
  finishedAt: Date | null
  /** As stored: a Date is its ISO text. undefined if it cannot be decoded; see `undecodable`. */
  data: Data | undefined
  /** What the handler last reported; undefined before it did. */
  progress: unknown
  /** What the handler returned; undefined before it did. */
  result: Result | undefined
  /**
   * Which of `data`, `progress` and `result` the store has but nobody can decode; they are undefined here. Nearly always empty: another
   * program wrote such a job, or its bytes were damaged.
   */
  undecodable: readonly JobPart[]
  /** What its handlers have logged, over all attempts: the last 100 lines, oldest first. */
  log: readonly LogLine[]
  /** What a parked job waits for; unset: it is not parked. */
  waits?: readonly StepWait[]
  /** Of `pond.job` alone, and only if it has any: its steps, and the signals that it was sent. */
  steps?: readonly StepInfo[]
}

/** A job in a list. */
export interface ListedJob<Data = unknown, Result = unknown> extends JobInfo<Data, Result> {
  /** Where a page ends that ends with this job: the option `after` of the next one. It holds even if the job has moved on or is gone. */
  cursor: string
}

/** What a stored part holds; null: it cannot be decoded. */
export function readable(encoded: Encoded, what: string): { value: unknown } | null {
  try {
    const value = decode(encoded, what)
    return isNestedTooDeep(value) ? null : { value }
  } catch (error) {
    if (isNotDecodable(error)) return null
    throw error
  }
}

/** Never throws because of the job's data: a job that cannot be read must not hide the jobs listed with it. */
export function jobInfo(record: JobRecord): JobInfo {
  const undecodable: JobPart[] = []
  const decoded = (part: JobPart): unknown => {
    const encoded = record[part]
    const read = encoded === null ? null : readable(encoded, `${part} of job ${record.id}`)
    if (encoded !== null && read === null) undecodable.push(part)
    return read?.value
  }
  // Other programs may have stored a time that no Date reaches.
  const dateOf = (ms: number) => new Date(Math.min(ms, LAST_MOMENT))
  const date = (ms: number | null) => (ms === null ? null : dateOf(ms))
  const { id, queue, state, priority, attempt, attempts, key, group, worker, timeout, trace, error, fence } = record
  return {
    fence,
    ...{ id, queue, state, priority, attempt, attempts, key, group, worker, timeout, trace, error },
    cost: record.cost,
    pushedAt: dateOf(record.pushedAt),
    dueAt: dateOf(record.dueAt),
    startedAt: date(record.startedAt),
    finishedAt: date(record.finishedAt),
    data: decoded('data'),
    progress: decoded('progress'),
    result: decoded('result'),
    undecodable,
    log: record.log?.map(readLogLine) ?? [],
    ...(record.unique && { once: record.unique }),
    ...(record.follows && { follows: true }),
    ...(record.parked !== undefined && { waits: waitsFrom(record.parked) }),
    ...(record.waitsFor !== undefined && { waitsFor: record.waitsFor }),
    ...(record.onDead !== undefined && { onDead: record.onDead }),
  }
}

/** The error that is kept of what a handler threw. Never throws. */
export function jobError(thrown: unknown): JobError {
  try {
    if (isError(thrown)) {
      return {
        code: thrown instanceof MillpondError ? thrown.code : 'HandlerFailed',
        name: clipped(String(thrown.name), 200),
        message: clipped(String(thrown.message), 4000),
        ...(typeof thrown.stack === 'string' ? { stack: clipped(thrown.stack, 8000) } : {}),
      }
    }
    return {
      code: 'HandlerFailed',
      name: 'NonError',
      message: `threw a non-error: ${clipped(described(thrown), 4000)}`,
    }
  } catch {
    return { code: 'HandlerFailed', name: 'NonError', message: 'threw something that cannot be shown' }
  }
}

/** The stored error as an Error again, for callers that wait for the result. */
export function errorFrom(stored: JobError): Error {
  const error = new Error(stored.message)
  error.name = stored.name
  if (stored.stack !== undefined) error.stack = stored.stack
  return Object.assign(error, { code: stored.code })
}

function described(thrown: unknown): string {
  if (typeof thrown === 'object' && thrown !== null) return JSON.stringify(thrown) ?? 'an object'
  return String(thrown)
}

/** Clips by UTF-16 units and mends a surrogate pair cut in two, since stores take well-formed text only. */
function clipped(text: string, most: number): string {
  const well = text.replaceAll('\0', '\\0').toWellFormed()
  return well.length <= most ? well : `${well.slice(0, most).toWellFormed()}…`
}
