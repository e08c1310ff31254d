/**
 * What every store does: the operations of `contract/operations.md`, one method each.
 * Every method takes a batch, because a store's cost is per call. Inputs are already checked: stores see no bad input.
 *
 * Calls made in the same tick may share one round trip and one commit; each still has its own outcome.
 */

import type { MillpondError } from './values/errors.ts'
import type { HistogramSlice } from './values/histogram.ts'
import type { GroupLimits, GroupRecord, HeldBack, LimitSettings } from './values/limits.ts'
import type { GivenSettings, QueueSettings, SettingName, SettingsChange } from './values/settings.ts'

export type { BackoffPolicy } from './values/backoff.ts'
export type { HistogramSlice, Metric } from './values/histogram.ts'
export {
  type GivenSettings,
  type QueueSettings,
  type SettingName,
  type SettingsChange,
  setsNothing,
} from './values/settings.ts'

/** How `data`, `progress` and `result` are encoded; see `contract/vectors/encoding.json`. */
export type Encoding = 'json' | 'msgpack' | 'bytes'
export interface Encoded {
  encoding: Encoding
  /** Text for `json`, bytes for the others. */
  body: string | Uint8Array
}

/** The states of a job that is not finished. */
export type LiveState = 'scheduled' | 'waiting' | 'running'
/** The states of a finished job. */
export type FinalState = 'done' | 'dead' | 'cancelled'
export type JobState = LiveState | FinalState
export const JOB_STATES: readonly JobState[] = ['scheduled', 'waiting', 'running', 'done', 'dead', 'cancelled']

/** Why an attempt failed, as kept with the job. */
export interface JobError {
  /** Of `contract/errors.json`; `HandlerFailed` for an error that is no MillpondError. */
  code: string
  /** The error's class; at most 128 characters. */
  name: string
  /** At most about 4,000 characters. */
  message: string
  /** At most about 8,000 characters. */
  stack?: string
}

export interface NewJob {
  /** UUIDv7 as text, made by the producer. Pushing an id that the store knows changes nothing and yields that job. */
  id: string
  queue: string
  /** 0 to 9, higher first. */
  priority: number
  /** Milliseconds from the store's now until the job is due; 0: at once. Not used when `runAt` is set. */
  delay: number
  /** When the job is due, in milliseconds since 1970; null: by `delay`. */
  runAt: number | null
  /** At most one live job per queue and key. */
  key: string | null
  /** In a grouped queue the jobs of a group share limits and take turns with other groups; else a label. */
  group: string | null
  /** What its start takes of a rate, 1 to 10,000; 1 unless set. */
  cost?: number
  /** How many attempts the job may take in all, at least 1; null: the queue's setting at the time of the push. */
  attempts: number | null
  /** How long one attempt may run, in milliseconds; null: the queue's setting at the time of the push. */
  timeout: number | null
  /** W3C trace context of the push, kept with the job. */
  trace: string | null
  data: Encoded
  /** true: the id was made for this push, so the store cannot know it and need not look. false unless set. */
  fresh?: boolean
}

/**
 * What became of one job of a push.
 *
 *   pushed     the job is stored
 *   existing   a live job has the key, or the id is known; `id` is that job's, and nothing was stored
 *   full       the queue is full; nothing was stored
 *   failed     only of stores with parts: the job's part failed, while others took their jobs. `error` says why. The job may have been
 *              stored all the same; pushing it again is safe
 */
export interface PushOutcome {
  status: 'pushed' | 'existing' | 'full' | 'failed'
  id: string
  error?: MillpondError
}

export interface ClaimRequest {
  queue: string
  /** The worker's id, for people to read. */
  worker: string
  /** Most jobs, at least 1. */
  limit: number
  /** Only jobs of this priority or a higher one; 0 unless set. */
  minPriority?: number
  /** Most jobs that a group of a grouped queue gives in one turn, at least 1; 1 unless set. */
  perGroup?: number
  /** Milliseconds that the claims hold unless extended; null: the queue's setting. */
  lease: number | null
}

export interface ClaimedJob {
  id: string
  /** Names this claim; higher than the fence of every earlier claim of the job. Operations on the claim state it. */
  fence: number
  /** Which attempt this is, from 1. A claim that was released does not count. */
  attempt: number
  attempts: number
  priority: number
  group: string | null
  key: string | null
  timeout: number | null
  trace: string | null
  /** When the job was pushed, by the store's clock, in milliseconds since 1970. */
  pushedAt: number
  /** When this attempt was due, by the same clock. */
  dueAt: number
  data: Encoded
}

export interface Claimed {
  /** The store's time of the claim, in milliseconds since 1970. */
  now: number
  /** Milliseconds that these claims hold unless extended. */
  lease: number
  /** Highest priority first, then in the order of first pushes. Fewer jobs than asked for do not mean an empty queue. */
  jobs: ClaimedJob[]
  /** Milliseconds after which another claim may bring more, because a job is due or a rate or pause allows a start then; null: no such time is known. */
  retryAfter: number | null
  /** true: the queue has a limit or a rate, so a job that is claimed ahead takes a slot or a start from others. */
  limited: boolean
}

/** The claim that an operation is about. */
export interface Hold {
  id: string
  fence: number
  /** The claim as the store returned it. It only saves the store a look-up. */
  claim?: ClaimedJob
}
export interface Completion extends Hold {
  /** null: the handler returned nothing. */
  result: Encoded | null
}
export interface Failure extends Hold {
  error: JobError
  /** Milliseconds until the next attempt; `backoff`: by the queue's setting; null: no further attempt. With no attempt left, the job is dead in any case. */
  delay: number | 'backoff' | null
}
export interface Release extends Hold {
  /** Milliseconds for which no job of its group is claimed, or none of the queue if it has no group; 0: not paused. 0 unless set. */
  pause?: number
}
export interface Extension extends Hold {
  /** What the handler last reported; null: nothing new, and the last report stays. */
  progress: Encoded | null
}

/** Outcome of an operation on a claim. `stale`: the claim is over; nothing was changed. */
export type HoldOutcome = 'ok' | 'stale'
/** `retry`: the job is waiting or scheduled again. `dead`: no attempt is left. `stale`: the claim is over; nothing was changed. */
export type FailOutcome = 'retry' | 'dead' | 'stale'
/** `cancelled`: stale, because a cancel has ended this claim. */
export type ExtendOutcome = 'ok' | 'stale' | 'cancelled'

export interface Swept {
  /** Jobs whose lease ran out. `attempt`: the lost attempt. `state`: the job waits again, or is dead. */
  lost: { id: string; queue: string; attempt: number; state: 'waiting' | 'dead' }[]
  /** How many scheduled jobs became waiting. */
  promoted: number
  /** How many finished jobs were removed. May exceed the limit, where a store drops many at once. */
  expired: number
  /** A limit was reached: sweep again at once. */
  more: boolean
  /** Milliseconds until the next scheduled job is due, 0 if one is overdue; null: no job is scheduled. */
  nextDue: number | null
  /** How many queues there are. */
  queues: number
}

/** All that the store keeps of a job. Times are the store's, in milliseconds since 1970. */
export interface JobRecord {
  id: string
  queue: string
  state: JobState
  /** 0 to 9, higher first. */
  priority: number
  /** How many attempts were started. */
  attempt: number
  /** How many attempts the job may take in all. */
  attempts: number
  key: string | null
  group: string | null
  /** What its start takes of a rate, from 1. */
  cost: number
  /** Milliseconds that an attempt may run; null: without limit. */
  timeout: number | null
  trace: string | null
  pushedAt: number
  dueAt: number
  startedAt: number | null
  finishedAt: number | null
  worker: string | null
  data: Encoded
  progress: Encoded | null
  result: Encoded | null
  /** Why the last failed attempt failed. */
  error: JobError | null
}

export interface QueueStats extends HeldBack {
  queue: string
  /** Whether claims are stopped. */
  paused: boolean
  /** Most scheduled and waiting jobs; null: no limit. */
  capacity: number | null
  /** What an operator has set, and code cannot change. Empty: nothing. */
  overrides: GivenSettings['operator']
  /** Milliseconds since a worker last asked for jobs, to within half a minute; null: none has, since the queue exists. */
  lastClaim: number | null
  /** Jobs per state, changed in the same commit as the jobs. */
  counts: Record<JobState, number>
  /** Milliseconds since the oldest waiting job became due; null: no job waits. */
  oldestWaiting: number | null
  /** null: the queue has no limits and is not grouped, or the store knows no limits. */
  limits: LimitSettings | null
  /** Of the minutes asked for, merged. */
  histograms: HistogramSlice[]
}

/**
 * A notification: a hint that something happened in a queue. It may be lost, repeated or needless.
 *
 *   work       jobs may be waiting
 *   room       the queue may have free capacity
 *   finished   these jobs may have finished; without `ids`, any job of the queue
 *   cancelled  these jobs may have been cancelled; without `ids`, any job of the queue
 */
export type Bell =
  | { kind: 'work'; queue: string }
  | { kind: 'room'; queue: string }
  | { kind: 'finished'; queue: string; ids?: readonly string[] }
  | { kind: 'cancelled'; queue: string; ids?: readonly string[] }

/** Where stores differ. */
export interface Capabilities {
  /** A push that has resolved survives the end of the process. */
  durable: boolean
  /** Other processes can open the same store. */
  shared: boolean
  /** A handler's writes and its job's completion can commit together, and pushes can be part of the caller's transaction. */
  transactions: boolean
  /** Handlers can read a replica of the store's database. false unless set. */
  replicas?: boolean
  /** Limits, rates, groups that take turns, `minPriority` of a claim and `pause` of a release. false unless set. */
  limits?: boolean
}

/**
 * Every call but `listen` and `close` may reject with StoreUnavailable, StoreBusy, StoreFull, StoreCorrupt, StoreFailed or Closed. Further codes
 * are listed at the method.
 *
 * A call that rejects has changed nothing, with three exceptions. After StoreUnavailable it may have taken effect, because only its answer was lost;
 * after StoreFailed, where the message says so, because the disk failed after the commit. On a store with parts (Redis with partitions), a batch
 * may have taken effect on some of them.
 */
export interface Store {
  /** The kind of the store: `memory`, `sqlite`, `redis` or `postgres`. */
  readonly name: string
  readonly capabilities: Capabilities
  /** true: calls are executed in the order in which they were made, so a second push may be sent while one is under way. false unless set. */
  readonly pipelined?: boolean
  /**
   * Names the part of the store that takes this job, such as one server of a cluster. Jobs of different lanes are pushed in separate calls, so
   * that a slow or failing server delays only its own jobs. Unset: one lane for all.
   */
  lane?(job: NewJob): string
  /** Names the part that gave this claim. Claims of different lanes are extended and ended in separate calls. Unset: one lane for all. */
  claimLane?(claim: ClaimedJob): string
  /** Set if `capabilities.transactions`. */
  readonly transactions?: StoreTransactions
  /** Set if `capabilities.replicas`. */
  readonly replicas?: StoreReplicas
  /** Operations for people and tools. */
  readonly admin: StoreAdmin

  /**
   * Sets the given settings and keeps the others; makes the queue if it does not exist. With only the queue's name it does nothing.
   * @returns which of the settings an operator's other value keeps out of effect
   * @throws InvalidOption: the store cannot keep the value (Redis: one that partitions share, below their number)
   */
  configure(settings: SettingsChange): Promise<readonly SettingName[]>
  /**
   * Gives a group limits of its own, and makes the queue a grouped one. Set if `capabilities.limits`.
   * @param limits null: as all groups of the queue
   * @throws InvalidOption: as `configure`, of the jobs without a group
   */
  limitGroup?(queue: string, group: string, limits: GroupLimits | null): Promise<void>
  /** Stores jobs, in one commit where the store can. Rejects if every job failed. @returns per job, in the order of the input */
  push(jobs: readonly NewJob[]): Promise<PushOutcome[]>
  /** Takes up to `limit` waiting jobs, highest priority first, then in the order of first pushes. Each gets a higher fence and a lease. */
  claim(request: ClaimRequest): Promise<Claimed>
  /** Ends claims as done. @returns per claim, in the order of the input */
  complete(queue: string, completions: readonly Completion[]): Promise<HoldOutcome[]>
  /** Ends claims as failed. @returns per claim, in the order of the input */
  fail(queue: string, failures: readonly Failure[]): Promise<FailOutcome[]>
  /** Gives claims back: the job waits at its old position, and the claim does not count as an attempt. @returns per claim, in the order of the input */
  release(queue: string, releases: readonly Release[]): Promise<HoldOutcome[]>
  /**
   * Extends leases and keeps progress. A lease is never shortened.
   * @param lease milliseconds; null: the queue's setting
   * @returns per claim, in the order of the input
   */
  extend(queue: string, lease: number | null, extensions: readonly Extension[]): Promise<ExtendOutcome[]>
  /** Cancels live jobs. @returns per id the state afterwards: `cancelled`, or the final state that the job had; null: the store does not know the job */
  cancel(ids: readonly string[]): Promise<(FinalState | null)[]>
  /**
   * Does what is due: due jobs begin to wait, lost leases end, expired jobs are removed, idle groups are forgotten. Also removes queues that
   * are idle (no job, default settings), once all sweeps of an hour have found them so. Any number of processes may sweep.
   * @param limit most jobs of each kind, and most groups, at least 1
   */
  sweep(limit: number): Promise<Swept>
  /** @returns per id the job; null: the store does not know it */
  find(ids: readonly string[]): Promise<(JobRecord | null)[]>
  /** Of every queue, or of the one named. @param options `minutes`: how far back the histograms go, 0 to 60; 0, as when unset: none */
  stats(options: { queue?: string; minutes?: number }): Promise<QueueStats[]>
  /** Adds measurements to the histograms of the current minute. The store keeps 60 minutes. */
  record(slices: readonly HistogramSlice[]): Promise<void>
  /** Workers claim from these queues now; for `lastClaim`. @returns per queue whether the store knows it */
  noteClaims(queues: readonly string[]): Promise<boolean[]>
  /** Calls the listener for each notification, until the returned function is called. @throws Closed */
  listen(listener: (bell: Bell) => void): () => void
  /** Closes the store. Later calls reject with `Closed`. May be called more than once. */
  close(): Promise<void>
}

export interface ListRequest {
  queue: string
  state: JobState
  /** Most jobs, at least 1. */
  limit: number
  /** The `cursor` of the last job of the page before. Unset: the first page. */
  after?: string
}

/** A job in a list. */
export interface ListedRecord extends JobRecord {
  /** Where a page ends that ends with this job: the next one begins there, even if the job has moved on or is gone. Each store has its own form. */
  cursor: string
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

export type RequeueRequest = { ids: readonly string[] } | RequeueDeadRequest

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

export interface StoreAdmin {
  /** What was given of a queue's settings; null: the store does not know the queue. Rejects as the methods of `Store` do. */
  settings(queue: string): Promise<GivenSettings | null>
  /**
   * Waiting jobs by priority and place, scheduled jobs by due time, running jobs by the end of their lease, finished jobs newest first.
   * Rejects as the methods of `Store` do.
   */
  list(request: ListRequest): Promise<ListedRecord[]>
  /**
   * Sends dead or cancelled jobs back to waiting, with all their attempts: those of `ids`, or up to `limit` dead jobs of a queue. Rejects as the
   * methods of `Store` do.
   */
  requeue(request: RequeueRequest): Promise<Requeued>
  /** The groups of a grouped queue by name, from after `after` on, or the one named. Set if `capabilities.limits`. Rejects as the methods of `Store` do. */
  groups?(request: GroupsRequest): Promise<GroupRecord[]>
  /**
   * How many waiting jobs come before this one: of its queue, or of its group in a grouped queue. A store may stop counting at 1,000. Set if
   * `capabilities.limits`. Rejects as the methods of `Store` do.
   * @returns null: the job is unknown or does not wait
   */
  ahead?(id: string): Promise<number | null>
}

/** Runs a statement inside a transaction, with the parameters of its placeholders. Resolves to the rows, by column name. */
export type TransactionQuery = (text: string, params?: readonly unknown[]) => Promise<Record<string, unknown>[]>

/** A transaction of the store's own connection, for one handler. */
export interface StoreTransaction {
  readonly query: TransactionQuery
  /**
   * Completes the jobs, one at least, and commits. If a claim is `stale`, nothing is committed, and `ok` says of the others that they are still
   * held. Rejects as the methods of `Store` do, and with TransactionMismatch once ended.
   * @returns per claim, in the order of the input
   */
  complete(queue: string, completions: readonly Completion[]): Promise<HoldOutcome[]>
  /** Does nothing if no statement was run. */
  rollback(): Promise<void>
}

export interface StoreTransactions {
  /** A transaction for a handler. It begins with the first `query`, so a handler's slow part before that holds no lock. */
  begin(): StoreTransaction
  /**
   * Pushes inside an open transaction of the caller, or inside that of a `query` of `begin`. Rejects as the methods of `Store` do, and with:
   * @throws TransactionMismatch: `tx` is no open transaction on the store's database. NotSupported: PostgreSQL, where the isolation level is
   * above READ COMMITTED and a job has an id of its own or its queue a capacity
   */
  push(tx: unknown, jobs: readonly NewJob[], settings?: QueueSettings): Promise<PushOutcome[]>
  /**
   * Whether a push takes along, into its transaction, settings of the queue that the store does not know yet. Where the transaction shuts out
   * all other writers, `configure` would wait for its end, and the push for `configure`.
   */
  readonly takesSettings: boolean
}

/** Reads for a handler: on the replica while it shows enough, else on the primary. Both refuse writes. */
export interface ReplicaQuery {
  (text: string, params?: readonly unknown[]): Promise<Record<string, unknown>[]>
  /** Whether reads go to the primary. Changes from false to true if the replica is lost. */
  readonly primary: boolean
}

/** A replica of the store's database, for one worker. */
export interface StoreReplica {
  /**
   * Asks the replica about claims. One call at a time.
   * @returns `shown`, per claim: whether the replica shows everything committed before any push that resolved to the job. `query`: reads
   * for the claims shown
   * @throws StoreUnavailable or another `Store…` code: the replica cannot be asked
   */
  shows(claims: readonly ClaimedJob[]): Promise<{ shown: boolean[]; query: ReplicaQuery }>
  /** Reads on the primary, for the other claims. */
  readonly primary: ReplicaQuery
  /** Gives up a `shows` without an answer, so that the next one does not wait behind it. */
  drop(): void
  /** Closes the connection, unless it is the caller's client. */
  close(): Promise<void>
}

export interface StoreReplicas {
  /** Connects at the first use. @param replica a URL, or a client of the caller @throws InvalidOption */
  open(replica: unknown): StoreReplica
}

/** The options of opening a store; each store lists its own. */
export interface StoreOptions {
  /** Replaces the store's clock in tests: milliseconds since 1970. */
  clock?: () => number
  [option: string]: unknown
}

/** Each module in `stores/` exports one of these as `open`. */
export type OpenStore = (url: URL | string, options: StoreOptions) => Promise<Store>
