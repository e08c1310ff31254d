/**
 * A job as the memory store holds it, and its copies for the world outside.
 *
 * At any time a job is in exactly one container, which its state names: the blocked list, the waiting jobs, the scheduled heap,
 * the running list or a list of finished jobs. So one pair of links (`prev`, `next`, `list`) and one heap index (`index`) serve for all of
 * them, and whatever happens to a job, it leaves where it is at once: nothing stale is ever left behind to be skipped.
 */

import type { Linked, LinkedList } from '../../values/collections/linked-list.ts'
import { withLines } from '../../values/jobs/job-log.ts'
import type {
  ClaimedJob,
  Encoded,
  Encoding,
  FinalState,
  JobError,
  JobRecord,
  JobState,
  NewJob,
  OnDead,
  Unique,
} from '../../values/jobs/records.ts'
import { copyBody, copyEncoded } from '../jobs.ts'
import type { IdRange, Indexed } from './id-index.ts'
import { Journal } from './journal.ts'

/**
 * Times inside the memory store are milliseconds since this moment. V8 keeps such small integers in the job itself, where
 * milliseconds since 1970 would take an object each.
 */
export const ORIGIN = Date.now()

export class Job implements Linked<Job>, Indexed<Job> {
  prev: Job | null = null
  next: Job | null = null
  list: LinkedList<Job> | null = null
  /** Index in a heap; -1: in none. */
  index = -1
  /** Where the store finds it by its id; null: it was never stored. */
  range: IdRange<Job> | null = null

  readonly id: string
  readonly queue: string
  /** The place: counts first pushes over the whole store. */
  readonly place: number
  priority: number
  readonly attempts: number
  readonly key: string | null
  readonly group: string | null
  readonly cost: number
  readonly timeout: number | null
  readonly trace: string | null
  readonly pushedAt: number
  encoding: Encoding
  body: string | Uint8Array

  state: JobState
  attempt = 0
  fence = 0
  dueAt: number
  /** These three mean something once a worker, or a final state, is set. */
  startedAt = 0
  leaseUntil = 0
  finishedAt = 0
  /** Which ending of its queue that was, so that jobs of the same millisecond have an order. */
  ending = 0
  /** Of the last claim; null: there was none, or it was given back. */
  worker: string | null = null
  progress: Encoded | null = null
  result: Encoded | null = null
  error: JobError | null = null
  /** Its lines; null: none. */
  log: readonly string[] | null = null
  /** For how long its key is remembered; null: it is not. */
  unique: Unique | null = null
  /** Of a follower: from when it may start; null: it is none. */
  followDue: number | null = null
  /** To its parents and children; null: it never had any. */
  links: Links | null = null
  /** null: it has no entries. */
  journal: Journal | null = null
  /** What it waits for, of a parked job; null: it is not parked. */
  parked: string | null = null

  /** @param defaults the queue's, for jobs without limits of their own */
  constructor(
    job: NewJob,
    defaults: { attempts: number; timeout: number | null },
    place: number,
    now: number,
    dueAt: number,
  ) {
    this.id = job.id
    this.queue = job.queue
    this.place = place
    this.priority = job.priority
    this.attempts = job.attempts ?? defaults.attempts
    this.key = job.key
    this.group = job.group
    this.cost = job.cost ?? 1
    this.timeout = job.timeout ?? defaults.timeout
    this.trace = job.trace
    this.pushedAt = now
    this.dueAt = dueAt
    this.state = dueAt > now ? 'scheduled' : 'waiting'
    this.encoding = job.data.encoding
    this.body = copyBody(job.data.body)
  }

  /** What a record has beyond a job that is new. */
  restore(record: JobRecord): void {
    this.state = record.state
    this.attempt = record.attempt
    this.fence = record.fence
    this.dueAt = record.dueAt - ORIGIN
    this.startedAt = (record.startedAt ?? ORIGIN) - ORIGIN
    this.finishedAt = (record.finishedAt ?? ORIGIN) - ORIGIN
    this.worker = record.worker
    this.progress = copyEncoded(record.progress)
    this.result = copyEncoded(record.result)
    this.error = copyError(record.error)
    if (record.log !== undefined) this.addLog(record.log)
    if (record.entries !== undefined && record.entries.length > 0) {
      this.journal = new Journal()
      this.journal.add(record.entries)
    }
    this.parked = record.parked ?? null
    if (record.unique !== undefined) this.unique = { ...record.unique }
  }

  addLog(lines: readonly string[]): void {
    this.log = withLines(this.log ?? [], lines)
  }

  toRecord(): JobRecord {
    return {
      id: this.id,
      queue: this.queue,
      state: this.state,
      priority: this.priority,
      attempt: this.attempt,
      attempts: this.attempts,
      fence: this.fence,
      key: this.key,
      group: this.group,
      cost: this.cost,
      timeout: this.timeout,
      trace: this.trace,
      pushedAt: ORIGIN + this.pushedAt,
      dueAt: ORIGIN + (this.followDue ?? this.dueAt),
      startedAt: this.worker === null ? null : ORIGIN + this.startedAt,
      finishedAt: isFinal(this.state) ? ORIGIN + this.finishedAt : null,
      worker: this.worker,
      data: { encoding: this.encoding, body: copyBody(this.body) },
      progress: copyEncoded(this.progress),
      result: copyEncoded(this.result),
      error: copyError(this.error),
      ...(this.log !== null && { log: [...this.log] }),
      ...(this.journal !== null && { journal: this.journal.size }),
      ...(this.parked !== null && { parked: this.parked }),
      ...(this.unique !== null && { unique: { ...this.unique } }),
      ...(this.followDue !== null && { follows: true }),
      ...(this.state === 'blocked' && { waitsFor: this.links?.open.size ?? 0 }),
      ...(this.state === 'blocked' && this.links?.onDead === 'run' && { onDead: 'run' }),
    }
  }
}

/** To its parents and children. `links.ts` makes them. */
export class Links {
  /** That are in the store, by id. */
  readonly parents: Map<string, Job>
  /** Ids of those that were, while this job lives. */
  readonly gone: Set<string>
  /** In the order in which the links were made. */
  readonly children: Set<Job>
  /** The ids of those that it waits for. A restored job may wait for one that is not in the store. Empty: it is not blocked. */
  readonly open = new Set<string>()
  readonly onDead: OnDead

  /** @param before the links that the job had until now, all of them closed */
  constructor(onDead: OnDead, before: Links | null = null) {
    this.onDead = onDead
    this.parents = before?.parents ?? new Map()
    this.gone = before?.gone ?? new Set()
    this.children = before?.children ?? new Set()
  }
}

export const isFinal = (state: JobState): state is FinalState =>
  state === 'done' || state === 'dead' || state === 'cancelled'

/** A claim as it is handed out: a copy, which alone knows the job that it is of. */
export class Claim implements ClaimedJob {
  readonly #job: Job
  readonly id: string
  readonly fence: number
  readonly attempt: number
  readonly attempts: number
  readonly priority: number
  readonly group: string | null
  readonly key: string | null
  readonly timeout: number | null
  readonly trace: string | null
  readonly pushedAt: number
  readonly dueAt: number
  readonly data: Encoded
  declare readonly journal?: number

  constructor(job: Job) {
    this.#job = job
    this.id = job.id
    this.fence = job.fence
    this.attempt = job.attempt
    this.attempts = job.attempts
    this.priority = job.priority
    this.group = job.group
    this.key = job.key
    this.timeout = job.timeout
    this.trace = job.trace
    this.pushedAt = ORIGIN + job.pushedAt
    this.dueAt = ORIGIN + job.dueAt
    this.data = { encoding: job.encoding, body: copyBody(job.body) }
    if (job.journal !== null) this.journal = job.journal.size
  }

  get job(): Job {
    return this.#job
  }
}

export const copyError = (error: JobError | null): JobError | null => (error === null ? null : { ...error })
