/** Inputs and outputs of the operations for people and tools: looking at jobs, changing them, the figures, the workers. */
import type { HistogramSlice } from '../figures/histogram.ts'
import type { Encoded, JobRecord, JobState, OnDead } from '../jobs/records.ts'
import type { GroupLimits, HeldBack, LimitSettings } from '../settings/limits.ts'
import type { GivenSettings, QueueSettings } from '../settings/settings.ts'

/** Which jobs of a state. All that is given must hold. */
export interface JobFilter {
  /** Of this group; empty: without a group. */
  group?: string
  key?: string
  /** The code of the last error. */
  errorCode?: string
  /** A part of the last error's message, as written. */
  errorText?: string
  /** Pushed at this time or later, in milliseconds since 1970. */
  pushedFrom?: number
  /** Pushed before this time. */
  pushedBefore?: number
  /** A part of the text of the data, as stored; only data encoded as `json` match. Needs the capability `text`. */
  text?: string
  /** A value at a place in the data; only data encoded as `json` match. Needs the capability `text`. */
  data?: DataFilter
}

/** Names that lead through objects, and a text, or a number, `true`, `false` or `null` as JSON writes them. */
export interface DataFilter {
  path: readonly string[]
  value: string
}

export interface ListRequest {
  queue: string
  state: JobState
  /** Most jobs, at least 1. */
  limit: number
  /** The cursor of a job, or the `next` of the page before. Unset: the first page. */
  after?: string
  filter?: JobFilter
}

/** A job in a list. */
export interface ListedRecord extends JobRecord {
  /**
   * Where a page ends that ends with this job: the next one begins there, even if the job has moved on or is gone. Each
   * store has its own form.
   */
  cursor: string
}

export interface Listed {
  jobs: ListedRecord[]
  /**
   * Where to go on; null: the list ended. A call looks at a bounded number of jobs, so with a filter a page may be
   * short or empty and not the last.
   */
  next: string | null
}

export interface GroupsRequest {
  queue: string
  /** Most groups, at least 1. */
  limit: number
  /** Cursor: the last name of the page before. Unset: the first page. */
  after?: string
  /** Only this group. */
  group?: string
}

export interface GroupLimitsChange {
  queue: string
  group: string
  /** null: as all groups of the queue. */
  limits: GroupLimits | null
}

/** `forget`: their journals lose the worker's entries from this number on. Unset: none. */
export type RequeueRequest = { ids: readonly string[]; forget?: number } | RequeueDeadRequest

/** Of a queue's dead jobs, longest dead first. */
export interface RequeueDeadRequest {
  queue: string
  /** Most jobs, at least 1. */
  limit: number
  /** Only jobs that were dead at this time of the store's clock: the `now` of the first of several calls. Unset: all. */
  until?: number
}

export interface Requeued {
  /** How many. A job whose key a live job has by now is not requeued. */
  requeued: number
  /** The store's time of the call, in milliseconds since 1970. */
  now: number
}

/** A change of a scheduled or waiting job. What is unset stays. */
export interface JobUpdate {
  id: string
  data?: Encoded
  /** 0 to 9, higher first. */
  priority?: number
  /** Milliseconds from the store's now until the job is due; 0: at once. Not used when `runAt` is set. */
  delay?: number
  /** When the job is due, in milliseconds since 1970. */
  runAt?: number
}

/** `updated`; else nothing was changed: the state that the job has instead, or null: the store does not know it. */
export type UpdateOutcome = 'updated' | JobState | null

/** Jobs by id; or of a queue, of one state or of all. */
export type RemoveRequest = { ids: readonly string[] } | RemoveQueueRequest

export interface RemoveQueueRequest {
  queue: string
  /** Unset: jobs of every state, and the queue itself once it has none. */
  state?: JobState
  /** Most jobs, at least 1. */
  limit: number
}

export interface Removed {
  /** How many jobs. */
  removed: number
  /** More are left: call again. */
  more: boolean
}

/**
 * `existing`: the id is known, or a live job has the key. `oversized`, `full`, of RabbitMQ: a limit of the server refuses the job. Unless
 * it is `restored`, nothing was stored.
 */
export type RestoreOutcome = 'restored' | 'existing' | 'oversized' | 'full'

/** What `bulk` does to a job. An update sets what is given; `runAt` as of `JobUpdate`. */
export type BulkChange =
  | { kind: 'requeue' | 'cancel' | 'remove' }
  | { kind: 'update'; priority?: number; runAt?: number }

/** A step of a change of all jobs of a state that pass a filter. */
export interface BulkRequest {
  queue: string
  state: JobState
  /** Suits the state: dead and cancelled jobs can be requeued, live ones cancelled, scheduled and waiting ones updated, all removed. */
  change: BulkChange
  /** Most jobs to change; 0: only counts those that would be. */
  limit: number
  /** The `next` of the step before. Unset: from the first job of the state. */
  after?: string
  filter?: JobFilter
  /** Only jobs that were in the state at this time of the store's clock: the `now` of the first of several steps. Unset: all. */
  until?: number
}

export interface BulkStep {
  /** How many jobs of the state the step has looked at. */
  looked: number
  /** How many of them passed. */
  matched: number
  /** How many were changed. Others stay: a live job has the key of one that was to be requeued, or it is changing just now. */
  changed: number
  /** Of a count: ids of the first ones that passed, at most ten. */
  sample: string[]
  /** Where to go on; null: the list ended. */
  next: string | null
  /** The store's time of the call, in milliseconds since 1970. */
  now: number
}

/** Slots that a worker keeps for urgent jobs. */
export interface Lane {
  /** The lowest priority that may hold the reserved slots; 1 to 9. Two lanes do not have the same. */
  minPriority: number
  /** How many slots jobs of a lower priority do not get; at least 1. All lanes together leave at least one slot. */
  reserve: number
}

/** A worker, as its process tells of it. One that claims from several queues has an entry for each. */
export interface WorkerBeat {
  /** As `worker` of claims. */
  id: string
  queue: string
  host: string
  pid: number
  /** How many jobs, or batches, it runs at once. */
  slots: number
  /** How many of them are taken. */
  busy: number
  /** The highest first. null: none, or its process is too old to tell. */
  lanes?: readonly Lane[] | null
}

export interface Heartbeat {
  workers: readonly WorkerBeat[]
  /** Ids of workers that were closed. */
  gone: readonly string[]
}

/** A worker that was heard of in the last minute. Times are the store's, in milliseconds since 1970. */
export interface WorkerRecord extends Required<WorkerBeat> {
  /** First heard of. */
  since: number
  /** Last heard of. */
  seen: number
  /** Milliseconds since then, by the store's clock. */
  silence: number
}

/** All that `configure` sets of a queue. */
export interface SettingsReport extends GivenSettings {
  /** In effect: an operator's, else the code's, else the default. */
  values: Required<Omit<QueueSettings, 'queue' | 'grouped'>> & { grouped: boolean }
}

/** How often something happened since the queue came to be. */
export interface Totals {
  pushed: number
  done: number
  /** Attempts that failed, the last ones of dead jobs included. */
  failed: number
  dead: number
  cancelled: number
  /** Claims whose lease ran out. */
  lost: number
  released: number
}

export interface QueueStats extends HeldBack {
  queue: string
  /** Whether claims are stopped. */
  paused: boolean
  /** Most blocked, scheduled and waiting jobs; null: no limit. */
  capacity: number | null
  /** What an operator has set, and code cannot change. Empty: nothing. */
  overrides: GivenSettings['operator']
  /** Milliseconds since a worker was last heard of that claims from the queue; null: none was, since the queue exists. */
  lastClaim: number | null
  /** Jobs per state, changed in the same commit as the jobs. */
  counts: Record<JobState, number>
  /** Changed in the same commit as the jobs. */
  totals: Totals
  /** Milliseconds since the oldest waiting job became due; null: no job waits. */
  oldestWaiting: number | null
  /** null: the queue has no limits and is not grouped, or the store knows no limits. */
  limits: LimitSettings | null
  /** Of the minutes asked for, merged. */
  histograms: HistogramSlice[]
}

export interface RelativesRequest {
  ids: readonly string[]
  /** Most parents, and most children, of each. */
  limit: number
}

/** A job's place in its graph. */
export interface Relatives {
  queue: string
  state: JobState
  onDead: OnDead
  /** The jobs that it waits or waited for, by id, without those that are gone. */
  parents: string[]
  /** Of a live job: the parents that are gone, by id. */
  gone: string[]
  /** The jobs that wait or waited for it, by id. */
  children: string[]
  /** There are more parents or children. */
  more: boolean
}
