/**
 * What every store does: the operations of `contract/operations.md`, one method each, and nothing more.
 * Everything works on batches, because a store's cost is per call. Everything is already checked: stores see no bad input.
 *
 * Calls made in the same tick may share one round trip and one commit; each still has its own outcome.
 * A call rejects with a MillpondError (`Store…` codes) when nothing of it took effect.
 */

import type { MillpondError } from './values/errors.ts'

/** How `data` and `result` are laid down; see `contract/vectors/encoding.json`. */
export type Encoding = 'json' | 'msgpack' | 'bytes'
export interface Encoded {
  encoding: Encoding
  /** Text for `json`, bytes for the others. */
  body: string | Uint8Array
}

export type LiveState = 'scheduled' | 'waiting' | 'running'
export type FinalState = 'done' | 'dead' | 'cancelled'
export type JobState = LiveState | FinalState
export const JOB_STATES: readonly JobState[] = ['scheduled', 'waiting', 'running', 'done', 'dead', 'cancelled']

/** Why an attempt failed, as kept with the job. `code` is from errors.json. */
export interface JobError {
  code: string
  name: string
  message: string
  stack?: string
}

export interface NewJob {
  /** UUIDv7 as text, made by the producer. Pushing an id that the store knows changes nothing and yields that job. */
  id: string
  queue: string
  /** 0–9, higher first. */
  priority: number
  /** Milliseconds from the store's now until it is due; 0: at once. Not used when `runAt` is set. */
  delay: number
  /** When it is due, in milliseconds since 1970; null: by `delay`. */
  runAt: number | null
  /** At most one live job per queue and key. */
  key: string | null
  /** A label; kept with the job. */
  group: string | null
  /** How many attempts it may take in all, at least 1; null: as many as the queue says at the time of the push. */
  attempts: number | null
  /** How long one attempt may run, in milliseconds; null: as long as the queue says at the time of the push. */
  timeout: number | null
  /** W3C trace context of the push, kept with the job. */
  trace: string | null
  data: Encoded
  /** The id was made for this very push, so that no store can know it yet. */
  fresh?: boolean
}

/**
 * `existing`: a live job has the key, or the id is known; `id` is that job's. `full`: not stored. `failed`: the part of the store that keeps this job
 * did not take it, while others took theirs; `error` says why. It may have been stored all the same, and can be pushed again.
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
  limit: number
  /** Milliseconds until the claim is lost unless extended; null: as long as the queue says. */
  lease: number | null
}

export interface ClaimedJob {
  id: string
  /** Names this claim; greater than that of every earlier claim of the job. Later operations must state it. */
  fence: number
  /** Which attempt this is, from 1. A claim that was released does not count. */
  attempt: number
  attempts: number
  priority: number
  group: string | null
  key: string | null
  timeout: number | null
  trace: string | null
  /** Store times in milliseconds since 1970: first pushed, and due for this attempt. */
  pushedAt: number
  dueAt: number
  data: Encoded
}

export interface Claimed {
  /** The store's time of the claim. */
  now: number
  /** Milliseconds that these claims hold unless extended. */
  lease: number
  /** Highest priority first, then oldest first push first. Fewer than asked for does not mean that no more wait. */
  jobs: ClaimedJob[]
  /** Milliseconds after which more may be claimable, as a job is due or a rate allows one; null: no such time is known. */
  retryAfter: number | null
}

/** The claim that an operation speaks for. */
export interface Hold {
  id: string
  fence: number
  /** The claim as the store handed it out, where it is at hand: it may spare the store a look-up, and changes nothing else. */
  claim?: ClaimedJob
}
export interface Completion extends Hold {
  /** null: the handler returned nothing. */
  result: Encoded | null
}
export interface Failure extends Hold {
  error: JobError
  /** Milliseconds until the next attempt; `backoff`: as the queue says; null: no further attempt. The store makes it dead, too, when attempts are used up. */
  delay: number | 'backoff' | null
}
export interface Extension extends Hold {
  /** What the handler last reported; null: nothing new. */
  progress: Encoded | null
}

/** Outcome of an operation on a claim, in the order of the input. */
export type HoldOutcome = 'ok' | 'stale'
/** `retry`: back to waiting or scheduled. */
export type FailOutcome = 'retry' | 'dead' | 'stale'
/** `cancelled`: stale, and the reason is known. */
export type ExtendOutcome = 'ok' | 'stale' | 'cancelled'

export interface Swept {
  /** Claims whose lease ran out: back to waiting, or dead. */
  lost: { id: string; queue: string; attempt: number; state: 'waiting' | 'dead' }[]
  /** How many scheduled jobs became waiting, and how many finished ones were removed: more than the limit where many go in one stroke. */
  promoted: number
  expired: number
  /** A limit was hit: sweep again at once. */
  more: boolean
  /** Milliseconds until the next scheduled job is due; null: none is. */
  nextDue: number | null
  /** How many queues there are. */
  queues: number
}

/** All there is to know about a job. Times are the store's, in milliseconds since 1970. */
export interface JobRecord {
  id: string
  queue: string
  state: JobState
  priority: number
  attempt: number
  attempts: number
  key: string | null
  group: string | null
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
  error: JobError | null
}

/** What belongs to a queue rather than to a process. Only what is given is changed. */
export interface QueueSettings {
  queue: string
  /** Most scheduled and waiting jobs; null: without limit. */
  capacity?: number | null
  /** Milliseconds that done, and dead or cancelled, jobs are kept. 0: not at all. */
  keepDone?: number
  keepDead?: number
  /** A paused queue takes pushes and yields no claims. */
  paused?: boolean
  /** Attempts of a job that is pushed without a number of its own; 10 unless set. */
  attempts?: number
  /** The delay of a failure that names none; 1 s, doubled each time, up to 1 h, half of it random, unless set. */
  backoff?: BackoffPolicy
  /** Milliseconds that a claim or an extension holds that names no lease; 30,000 unless set. */
  lease?: number
  /** Milliseconds that an attempt may run of a job that is pushed without a limit of its own; null, which it is unless set: without limit. */
  timeout?: number | null
}

/** delay = min(max, base × factor^(attempt − 1)) × (1 − jitter × random), in whole milliseconds; `contract/vectors/backoff.json` has cases. */
export interface BackoffPolicy {
  /** Milliseconds after the first attempt. */
  base: number
  /** 1 to 100; 1: the same delay each time. */
  factor: number
  /** Longest delay before jitter, in milliseconds. */
  max: number
  /** The share of the delay that is random, 0 to 1. */
  jitter: number
}

/** Settings that name a queue and nothing else: they make none. */
export const setsNothing = ({ queue: _, ...given }: QueueSettings): boolean =>
  Object.values(given).every((value) => value === undefined)

export type Metric = 'wait' | 'run'
/** Counts per bucket of `histogram.ts`, over whatever time they were gathered. */
export interface HistogramSlice {
  queue: string
  priority: number
  metric: Metric
  /** Bucket index → how many. */
  buckets: Record<number, number>
}

export interface QueueStats {
  queue: string
  paused: boolean
  capacity: number | null
  /** Jobs per state. Maintained, never counted by a scan. */
  counts: Record<JobState, number>
  /** Milliseconds since the oldest waiting job became due; null: none waits. */
  oldestWaiting: number | null
  /** The last minutes asked for, merged. */
  histograms: HistogramSlice[]
}

/** Something happened that someone may wait for. A bell is a hint: it can be missed, doubled or rung for nothing. */
export type Bell =
  | { kind: 'work'; queue: string }
  | { kind: 'room'; queue: string }
  /** `ids` where they are at hand, else any job of the queue may have finished. */
  | { kind: 'finished'; queue: string; ids?: readonly string[] }
  | { kind: 'cancelled'; queue: string; ids?: readonly string[] }

/** Where stores differ. */
export interface Capabilities {
  /** An acknowledged push survives the process. */
  durable: boolean
  /** Other processes can open the same store. */
  shared: boolean
  /** `transactions` is there: the handler's writes and the completion commit together. */
  transactions: boolean
  /** `replicas` is there: handlers can read a replica of the store's database. false unless set. */
  replicas?: boolean
}

export interface Store {
  /** As in the URL's scheme. */
  readonly name: string
  readonly capabilities: Capabilities
  /** Calls made one after another are carried out in that order, and a second push may well be sent while one is under way. false unless set. */
  readonly pipelined?: boolean
  /**
   * Names what a push of this job depends on, where not all depend on the same, as on servers of a cluster: jobs of different lanes are pushed in
   * calls of their own, so that one that fails or is slow is no other's trouble. One lane for all unless given.
   */
  lane?(job: NewJob): string
  /** There when `capabilities.transactions`. */
  readonly transactions?: StoreTransactions
  /** There when `capabilities.replicas`. */
  readonly replicas?: StoreReplicas
  /** What people and tools ask for; every store of ours has it. */
  readonly admin: StoreAdmin

  /** With nothing but the queue's name it does nothing, and makes no queue. */
  configure(settings: QueueSettings): Promise<void>
  /** Rejects where every job failed. */
  push(jobs: readonly NewJob[]): Promise<PushOutcome[]>
  claim(request: ClaimRequest): Promise<Claimed>
  complete(queue: string, completions: readonly Completion[]): Promise<HoldOutcome[]>
  fail(queue: string, failures: readonly Failure[]): Promise<FailOutcome[]>
  /** Gives claims back unstarted: the job keeps its place, and the claim does not count as an attempt. */
  release(queue: string, holds: readonly Hold[]): Promise<HoldOutcome[]>
  /** @param lease milliseconds; null: as long as the queue says */
  extend(queue: string, lease: number | null, extensions: readonly Extension[]): Promise<ExtendOutcome[]>
  /** The state that each job is in afterwards: `cancelled`, or the final one it was in already; null: unknown. */
  cancel(ids: readonly string[]): Promise<(FinalState | null)[]>
  /** What time alone brings about. Also removes queues that its sweeps have found idle for an hour: no job, default settings. */
  sweep(limit: number): Promise<Swept>
  find(ids: readonly string[]): Promise<(JobRecord | null)[]>
  /** Every queue, or the one named; `minutes`: how far back the histograms go, 0: none. */
  stats(options: { queue?: string; minutes?: number }): Promise<QueueStats[]>
  record(slices: readonly HistogramSlice[]): Promise<void>
  /** Hands over bells until the returned function is called. */
  listen(listener: (bell: Bell) => void): () => void
  /** Lets go of the store. Calls after it reject with `Closed`. */
  close(): Promise<void>
}

export interface ListRequest {
  queue: string
  state: JobState
  limit: number
  /** Cursor: the last id of the page before. */
  after?: string
}

export interface StoreAdmin {
  /** Waiting jobs in the order of claiming; others newest first for final states, soonest first for live ones. */
  list(request: ListRequest): Promise<JobRecord[]>
  /** Dead or cancelled jobs go back to waiting with all their attempts: the named ones, or up to `limit` dead ones of a queue. How many did. */
  requeue(request: { ids: readonly string[] } | { queue: string; limit: number }): Promise<number>
}

/** Runs a statement inside a transaction. */
export type TransactionQuery = (text: string, params?: readonly unknown[]) => Promise<Record<string, unknown>[]>

/** A transaction of the store's own connection, for one handler. */
export interface StoreTransaction {
  readonly query: TransactionQuery
  /** Completes the job and commits; `stale` rolls back. */
  complete(queue: string, completion: Completion): Promise<HoldOutcome>
  rollback(): Promise<void>
}

export interface StoreTransactions {
  /** `query` begins the transaction when first called, so that a handler's slow part holds no lock. */
  begin(): StoreTransaction
  /** Pushes inside a transaction of the caller, or a `query` of `begin`. Rejects with `TransactionMismatch` if it isn't one. */
  push(tx: unknown, jobs: readonly NewJob[]): Promise<PushOutcome[]>
}

/** Reads for a handler: on the replica as long as that is known to show enough, else on the primary. Nothing can be written on either. */
export interface ReplicaQuery {
  (text: string, params?: readonly unknown[]): Promise<Record<string, unknown>[]>
  /** Reads go to the primary. May change from false to true, when the replica is lost. */
  readonly primary: boolean
}

/** A replica of the store's database, which lags behind, for one worker. */
export interface StoreReplica {
  /**
   * Per claim: whether the replica shows all that was committed before any push that led to it; `query` is for those that it does.
   * Rejects where it cannot be asked. One call at a time.
   */
  shows(claims: readonly ClaimedJob[]): Promise<{ shown: boolean[]; query: ReplicaQuery }>
  /** Reads on the primary, for the other claims. */
  readonly primary: ReplicaQuery
  /** Gives up a `shows` that was not answered, so that the next one need not wait behind it. */
  drop(): void
  close(): Promise<void>
}

export interface StoreReplicas {
  /** Connects when first asked. @param replica a URL, or a client of the caller's @throws InvalidOption */
  open(replica: unknown): StoreReplica
}

/** What a store is opened with, after the URL's and the caller's options are merged. */
export interface StoreOptions {
  /** Replaces the store's clock in tests: milliseconds since 1970. */
  clock?: () => number
  [option: string]: unknown
}

/** Each module in `stores/` exports one of these as `open`. */
export type OpenStore = (url: URL | string, options: StoreOptions) => Promise<Store>
