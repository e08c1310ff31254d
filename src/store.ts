/**
 * What every store does: a flat table of the operations of `contract/operations.md`, from exactly its input to exactly its output.
 * Operations take batches, because a store's cost is per call. Inputs are already checked: stores see no bad input.
 *
 * Calls made in the same tick may share one round trip and one commit; each still has its own outcome.
 */

import type { HistogramSlice } from './values/figures/histogram.ts'
import type {
  Claimed,
  ClaimedJob,
  ClaimRequest,
  Completion,
  EntriesPage,
  ExtendOutcome,
  Extension,
  FailOutcome,
  Failure,
  FinalState,
  HoldOutcome,
  JobOutcome,
  JobRecord,
  JournalItem,
  JournalOutcome,
  NewJob,
  PushOutcome,
  Release,
  ReleaseOutcome,
  SignalItem,
  SignalOutcome,
} from './values/jobs/records.ts'
import type {
  BulkRequest,
  BulkStep,
  GroupLimitsChange,
  GroupsRequest,
  Heartbeat,
  JobUpdate,
  Listed,
  ListRequest,
  QueueStats,
  Relatives,
  RelativesRequest,
  Removed,
  RemoveRequest,
  Requeued,
  RequeueRequest,
  RestoreOutcome,
  SettingsReport,
  UpdateOutcome,
  WorkerRecord,
} from './values/operations/requests.ts'
import type { Swept } from './values/operations/swept.ts'
import type { Declaration, DeclareOutcome, FireOutcome, Firing, ScheduleRecord } from './values/schedules/records.ts'
import type { GroupRecord } from './values/settings/limits.ts'
import type { QueueSettings, SettingName, SettingsChange } from './values/settings/settings.ts'

/** What a batch of endings or extensions is about. */
export interface OfQueue<Item> {
  queue: string
  items: readonly Item[]
}

export interface Endings<Item> extends OfQueue<Item> {
  /** Rather than wait for another transaction, the store answers `held`. */
  deferred?: boolean
}

/**
 * Every operation may reject with StoreUnavailable, StoreBusy, StoreFull, StoreCorrupt, StoreFailed or Closed; and with
 * NotSupported, where a capability is false. Further codes are listed at the operation.
 *
 * An operation that rejects has changed nothing, with two exceptions. After StoreUnavailable it may have taken effect, because only its
 * answer was lost; after StoreFailed, where the message says so, because the disk failed after the commit.
 *
 * Outputs that are lists have an entry per item of the input, in its order; those of `list`, `groups`, `stats` and `workers` do not.
 */
export interface Operations {
  /**
   * Sets the given settings and keeps the others; makes the queue if it does not exist. With only the queue's name it does nothing.
   * @returns which of the settings an operator's other value keeps out of effect
   */
  configure(input: SettingsChange): Promise<readonly SettingName[]>
  /**
   * Gives a group limits of its own, and makes the queue a grouped one.
   */
  limitGroup(input: GroupLimitsChange): Promise<void>
  /** All settings of a queue, and who gave them; null: the store does not know the queue. */
  settings(input: { queue: string }): Promise<SettingsReport | null>

  /**
   * Stores jobs, in one commit where the store can; all or none, if `whole`. Rejects if every job failed.
   * `deferred`: the caller takes outcomes that come `later`.
   */
  push(input: { jobs: readonly NewJob[]; whole?: boolean; deferred?: boolean }): Promise<PushOutcome[]>
  /** Takes up to `limit` waiting jobs, highest priority first, then in the order of first pushes. Each gets a higher fence and a lease. */
  claim(input: ClaimRequest): Promise<Claimed>
  /** Ends claims as done. */
  complete(input: Endings<Completion>): Promise<HoldOutcome[]>
  /** Ends claims as failed. */
  fail(input: Endings<Failure>): Promise<FailOutcome[]>
  /** Gives claims back: the job waits at its old place, or is parked, and the claim does not count as an attempt. */
  release(input: Endings<Release>): Promise<ReleaseOutcome[]>
  /** Extends leases, keeps progress and adds to logs. A lease is never shortened. `lease`: milliseconds; null: the queue's setting. */
  extend(input: OfQueue<Extension> & { lease: number | null }): Promise<ExtendOutcome[]>
  /** Adds entries to the journals of claimed jobs: contract/steps.md. Those whose names are there already are left out. */
  journal(input: OfQueue<JournalItem>): Promise<JournalOutcome[]>
  /** The entries of jobs, from behind a number on; about 4 MiB. @returns null: the store does not know the job */
  entries(input: { items: readonly { id: string; after: number }[] }): Promise<(EntriesPage | null)[]>
  /** Adds an entry from outside to the journals of live jobs; parked ones wait then. */
  signal(input: { items: readonly SignalItem[] }): Promise<SignalOutcome[]>
  /**
   * Does what is due: due jobs begin to wait, lost leases end, expired jobs are removed, idle groups are forgotten; and
   * tells which schedules are due. Any number of processes may sweep.
   */
  sweep(input: { limit: number }): Promise<Swept>

  /**
   * Cancels live jobs.
   * @returns the state afterwards: `cancelled`, or the final state that the job had; null: the store does not know the
   *   job
   */
  cancel(input: { ids: readonly string[] }): Promise<(FinalState | null)[]>
  /** Changes scheduled and waiting jobs. They keep their places. */
  update(input: { items: readonly JobUpdate[] }): Promise<UpdateOutcome[]>
  /** Sends dead or cancelled jobs back to waiting, with all their attempts: those of `ids`, or up to `limit` dead jobs of a queue. */
  requeue(input: RequeueRequest): Promise<Requeued>
  /**
   * Removes jobs of any state, as if they had never been pushed; a running one's claim becomes stale. Without a state:
   * a whole queue, step by step.
   */
  remove(input: RemoveRequest): Promise<Removed>
  /** Changes jobs of a state that pass a filter, a bounded step in the order of `list`, each in one commit with the look at it. */
  bulk(input: BulkRequest): Promise<BulkStep>
  /** Puts jobs back as they were, whatever the capacity, behind all that are there, in the order of the input. None may be running. */
  restore(input: { records: readonly JobRecord[] }): Promise<RestoreOutcome[]>

  /** @returns the job; null: the store does not know it */
  find(input: { ids: readonly string[] }): Promise<(JobRecord | null)[]>
  /**
   * What has become of jobs, without their data. Where results are large, the answer is for the first ids alone: call again
   * for the others.
   */
  outcomes(input: { ids: readonly string[] }): Promise<(JobOutcome | null)[]>
  /** Waiting jobs by priority and place, scheduled jobs by due time, running jobs by the end of their lease, finished jobs newest first. */
  list(input: ListRequest): Promise<Listed>
  /** The groups of a grouped queue by name, from after `after` on, or the one named. */
  groups(input: GroupsRequest): Promise<GroupRecord[]>
  /**
   * How many waiting jobs come before this one: of its queue, or of its group in a grouped queue. A store may stop counting at 1,000.
   * @returns null: the job is unknown or does not wait
   */
  ahead(input: { id: string }): Promise<number | null>

  /** Which jobs wait, or waited, for which: contract/graphs.md. @returns null: the store does not know the job */
  relatives(input: RelativesRequest): Promise<(Relatives | null)[]>

  /** Of every queue, or of the one named. `minutes`: how far back the histograms go, 0 to 60, or `ALL_MINUTES`; 0, as when unset: none. */
  stats(input: { queue?: string; minutes?: number }): Promise<QueueStats[]>
  /** Adds measurements to the histograms of the current minute. The store keeps 60 minutes. */
  record(input: { slices: readonly HistogramSlice[] }): Promise<void>
  /** Tells of workers that claim now, and of some that are gone. @returns per worker whether the store knows its queue */
  heartbeat(input: Heartbeat): Promise<boolean[]>
  /** The workers that were heard of in the last minute, of every queue or of the one named, by `since`. */
  workers(input: { queue?: string }): Promise<WorkerRecord[]>

  /** Makes and changes schedules. One that another version has replaced stays as it is while that version is still declared. */
  declare(input: { schedules: readonly Declaration[] }): Promise<DeclareOutcome[]>
  /** The schedules by name, from after `after` on, or the one named. */
  schedules(input: { limit: number; after?: string; name?: string }): Promise<ScheduleRecord[]>
  /** Stops a schedule from firing, or lets it go on with the times to come. @returns whether the store knows it */
  pauseSchedule(input: { name: string; paused: boolean }): Promise<boolean>
  /** @returns whether the store knew it */
  removeSchedule(input: { name: string }): Promise<boolean>
  /** Moves the next time of schedules on, each only if it is the expected one, and pushes their jobs in the same commit. */
  fire(input: { firings: readonly Firing[] }): Promise<FireOutcome[]>
}

export type OperationName = keyof Operations
export type Input<Name extends OperationName> = Parameters<Operations[Name]>[0]
export type Output<Name extends OperationName> = Awaited<ReturnType<Operations[Name]>>

/** Where stores differ: contract/operations.md, "Capabilities". Where one is false, what needs it answers `NotSupported`. */
export interface Capabilities {
  /** A push that has resolved survives the end of the process. */
  durable: boolean
  /** Other processes can open the same store. */
  shared: boolean
  /** Calls are executed in the order in which they were made, so a second push may be sent while one is under way. */
  pipelined: boolean
  /** A handler's writes and its job's completion can commit together, and pushes can be part of the caller's transaction. */
  transactions: boolean
  /** Handlers can read a replica of the store's database. */
  replicas: boolean
  /**
   * `spill` of a push: what a full queue has no room for goes to a durable store, and so does all the rest when this one
   * closes. With `durable` false: what is in memory is lost in a crash.
   */
  spill: boolean
  /** `configure` and `settings`. */
  settings: boolean
  /** Pushes that are due later, and failures with a delay. */
  delays: boolean
  /** Priorities other than 4, and `minPriority` of a claim. */
  priorities: boolean
  /** `key` of a push. */
  keys: boolean
  /** `once` of a push: keys that are remembered, replace jobs or make them follow. */
  once: boolean
  /** `after`, `onDead` and `partOf` of a push, `whole`, and `relatives`. */
  graphs: boolean
  /** Results and progress are kept. Where false, they are dropped. */
  results: boolean
  /** The log of a job is kept. Where false, its lines are dropped. */
  logs: boolean
  /** Jobs have journals: `journal`, `entries`, `signal`, `park` of a release. */
  steps: boolean
  /** `running` of a queue. */
  limits: boolean
  /** `rate` of a queue, `pause` of a release. */
  rates: boolean
  /** Groups take turns and have limits: `grouped`, `groupRunning`, `groupRate`, `limitGroup`, `groups`, `perGroup` of a claim. */
  groups: boolean
  /** `find`, `outcomes`, `ahead`. */
  find: boolean
  /** `list`, `bulk`. */
  lists: boolean
  /** `text` of a list's filter. */
  text: boolean
  cancel: boolean
  update: boolean
  requeue: boolean
  remove: boolean
  restore: boolean
  /** Exact figures of all processes in `stats` and `sweep`. Else they have what the store can count. */
  counts: boolean
  /** `record`, and histograms of `stats`. */
  histograms: boolean
  /** `heartbeat` and `workers`. */
  workers: boolean
  /** `declare`, `schedules`, `pauseSchedule`, `removeSchedule` and `fire`. */
  schedules: boolean
  /** A queue without a `capacity` of its own has one: `memory.capacity` of contract/defaults.json. Where false, it has none. */
  bounded: boolean
}

/**
 * A bell: a hint that something happened in a queue. It may be lost, repeated or needless.
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

/** Several stores as one: contract/shards.md. */
export interface StoreShards {
  readonly count: number
  /** From 0. */
  of(queue: string): number
}

export interface Store {
  /** The kind of the store: `memory`, `sqlite`, `redis`, `postgres` or `rabbitmq`. */
  readonly name: string
  readonly capabilities: Capabilities
  readonly operations: Operations
  /**
   * Pushes of different lanes go in calls of their own, so that one that waits holds up no other. The jobs of a queue that have the same
   * `spill` are in one lane. Unset: all jobs are.
   */
  readonly laneOf?: (job: NewJob) => string
  /** The store's clock, in milliseconds since 1970, where this process has it. Unset: it is a server's. */
  readonly clock?: () => number
  /** Unset: it is one store. */
  readonly shards?: StoreShards
  /** Set if `capabilities.transactions`. */
  readonly transactions?: StoreTransactions
  /** Set if `capabilities.replicas`. */
  readonly replicas?: StoreReplicas
  /** Calls the listener for each bell, until the returned function is called. @throws Closed */
  listen(listener: (bell: Bell) => void): () => void
  /** Closes the store. Later calls reject with `Closed`. May be called more than once. */
  close(): Promise<void>
}

/** Runs a statement inside a transaction, with the parameters of its placeholders. Resolves to the rows, by column name. */
export type TransactionQuery = (text: string, params?: readonly unknown[]) => Promise<Record<string, unknown>[]>

/** A transaction of the store's own connection, for one handler. */
export interface StoreTransaction {
  readonly query: TransactionQuery
  /**
   * Completes the jobs, one at least, and commits. If a claim is `stale`, nothing is committed, and `ok` says of the
   * others that they are still held. Rejects as operations do, and with TransactionMismatch once ended.
   */
  complete(input: OfQueue<Completion>): Promise<HoldOutcome[]>
  /** Adds entries to journals, and commits. Unless all are `ok`, nothing is committed. Rejects as `complete`. */
  journal(input: OfQueue<JournalItem>): Promise<JournalOutcome[]>
  /** Does nothing if no statement was run. */
  rollback(): Promise<void>
}

export interface PushInTransaction {
  /** An open transaction of the caller, or the `query` of a transaction of `begin`. */
  tx: unknown
  jobs: readonly NewJob[]
  /** As of `push`. */
  whole?: boolean
  /** Of the queues, if `takesSettings`. */
  settings?: readonly QueueSettings[]
}

export interface StoreTransactions {
  /** A transaction for a handler of the queue. It begins with the first `query`, so a handler's slow part before holds no lock. */
  begin(queue: string): StoreTransaction
  /**
   * Pushes inside an open transaction. Rejects as operations do, and with:
   * @throws TransactionMismatch: `tx` is no open transaction on the store's database. NotSupported: PostgreSQL, where
   * the isolation level is above READ COMMITTED and a job has an id of its own or its queue a capacity
   */
  push(input: PushInTransaction): Promise<PushOutcome[]>
  /**
   * Whether a push takes along, into its transaction, settings of the queue that the store does not know yet. Where the
   * transaction shuts out all other writers, `configure` would wait for its end, and the push for `configure`.
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
  clock?: (() => number) | undefined
  [option: string]: unknown
}

/** Each module in `stores/` exports one of these as `open`. */
export type OpenStore = (url: URL | string, options: StoreOptions) => Promise<Store>
