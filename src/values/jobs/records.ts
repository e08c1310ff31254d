/** What goes into the operations of a store, and what comes out: contract/operations.md has the words, `src/store.ts` the table. */

import type { MillpondError } from '../errors/errors.ts'

/** How `data`, `progress` and `result` are encoded; see `contract/vectors/encoding.json`. */
export type Encoding = 'json' | 'msgpack' | 'bytes'
export interface Encoded {
  encoding: Encoding
  /** Text for `json`, bytes for the others. */
  body: string | Uint8Array
}

/** The states of a job that is not finished. */
export type LiveState = 'blocked' | 'scheduled' | 'waiting' | 'running'
/** The states of a finished job. */
export type FinalState = 'done' | 'dead' | 'cancelled'
export type JobState = LiveState | FinalState
export const JOB_STATES: readonly JobState[] = [
  ...(['blocked', 'scheduled', 'waiting', 'running'] as const),
  ...(['done', 'dead', 'cancelled'] as const),
]

/** What becomes of a job when one that it waits for ends otherwise than done. */
export type OnDead = 'cancel' | 'run'

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
  /** What the key does beyond "one live job". Needs a key, and the capability `once`. */
  once?: Once
  /** true: the id was made for this push, so the store cannot know it and need not look. false unless set. */
  fresh?: boolean
  /** The job waits for the jobs with these ids, of any queue: contract/graphs.md. Needs the capability `graphs`. None unless set. */
  after?: readonly string[]
  /** `cancel` unless set. */
  onDead?: OnDead
  /** The id of a live job: every job that waits for that one waits for this one too. */
  partOf?: string
  /** Where the queue is full, the job goes to the spill store. Needs the capability `spill`. false unless set. */
  spill?: boolean
}

/** For how long a key is remembered after its job was pushed, or after it ended. */
export interface Unique {
  /** In milliseconds, at least 1. */
  for: number
  since: 'end' | 'push'
}

/** What the key of a push does: contract/operations.md, "Once for a while". */
export interface Once {
  unique?: Unique
  /** A scheduled or waiting job with the key gets this push's data and due time. */
  replace?: boolean
  /** The job is due no later than its first push and so many milliseconds. */
  maxWait?: number
  /** While the job with the key runs, this one is kept, and becomes due when that one ends. */
  follow?: boolean
}

/**
 * What became of one job of a push.
 *
 *   pushed     the job is stored
 *   existing   a job has the key, live or remembered, or the id is known; `id` is that job's, and nothing was stored
 *   replaced   the job `id` has the data and due time of this push; no job was added
 *   full       the queue is full; nothing was stored
 *   orphan     the job `parent`, of `after` or `partOf`, is unknown, or has ended (`partOf`); nothing was stored
 *   held       the job `id` has the key, live or remembered, and the pushed one was to wait for others (`after`); nothing was stored
 *   withheld   the push is to store all jobs or none, and could not store another one; nothing was stored
 *   failed     only of stores made of several: the job's store failed, while others took their jobs. `error` says why. The job may have
 *              been stored all the same; pushing it again is safe
 */
export interface PushOutcome {
  status: 'pushed' | 'existing' | 'replaced' | 'full' | 'orphan' | 'held' | 'withheld' | 'failed' | 'later'
  id: string
  /** Of `later`: another transaction holds what the job needs. Only where the push asked for it with `deferred`. */
  later?: Promise<PushOutcome>
  /** Of an `orphan`. */
  parent?: string
  error?: MillpondError
}

/** Of a job's journal: contract/steps.md. */
export interface NewEntry {
  /** `=` or `+` and the key of a step; or `!`, the name of a signal, `/` and a UUID. */
  name: string
  /** JSON: what kind of step it is, and when it was. */
  meta: string
  body: Encoded | null
}
export interface Entry extends NewEntry {
  /** Its number, from 1, in the order in which they came; with gaps. */
  n: number
}
/** A job that waits without a worker: contract/steps.md, "park". */
export interface Park {
  /** When it goes on at the latest, in milliseconds since 1970; null: at no time that anybody knows of. */
  until: number | null
  /** How many signals the worker knows: if there are more, the job goes on at once. */
  signals: number
  /** It waits until these jobs have ended. */
  after: readonly string[]
  /** Added to the journal before. */
  entries: readonly NewEntry[]
  /** What it waits for, as JSON. */
  reason: string
}

/** Entries that a claim adds to the journal of its job. */
export interface JournalItem extends Hold {
  entries: readonly NewEntry[]
}
/**
 * `full`: the journal would outgrow a bound, and nothing was added.
 * `held`: another transaction has the job or its journal, and nothing was added.
 */
export type JournalOutcome = HoldOutcome | 'full' | 'held'

/** A signal for a live job, which is named by its id, or by its queue and key. */
export type SignalItem = NewEntry & ({ id: string } | { queue: string; key: string })
/**
 *   ok     the job has it
 *   ended  the job has ended
 *   full   its journal would outgrow a bound
 *   none   there is no such job
 */
export interface SignalOutcome {
  status: 'ok' | 'ended' | 'full' | 'none'
  id: string | null
}

/** Entries of a job from behind a number on; `more`: there are further ones. */
export interface EntriesPage {
  entries: Entry[]
  more: boolean
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
  /** How many entries its journal has; unset: it has none. */
  journal?: number
  /** Only of RabbitMQ: the headers of a message that another program published, and its properties. */
  headers?: Readonly<Record<string, unknown>>
}

export interface Claimed {
  /** The store's time of the claim, in milliseconds since 1970. */
  now: number
  /** Milliseconds that these claims hold unless extended. */
  lease: number
  /** Highest priority first, then in the order of first pushes. Fewer jobs than asked for do not mean an empty queue. */
  jobs: ClaimedJob[]
  /**
   * Milliseconds after which another claim may bring more, because a job is due or a rate or pause allows a start then;
   * null: no such time is known.
   */
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
  /** Lines for the job's log, unless the claim is over. Those that it has already are left out. None unless set. */
  log?: readonly string[] | undefined
}
export interface Completion extends Hold {
  /** null: the handler returned nothing. */
  result: Encoded | null
}
export interface Failure extends Hold {
  error: JobError
  /**
   * Milliseconds until the next attempt; `backoff`: by the queue's setting; null: no further attempt. With no attempt
   * left, the job is dead in any case.
   */
  delay: number | 'backoff' | null
}
export interface Release extends Hold {
  /** Milliseconds for which no job of its group is claimed, or none of the queue if it has no group; 0: not paused. 0 unless set. */
  pause?: number
  /** It is not given back, but waits for something. Needs the capability `steps`. */
  park?: Park
}
export interface Extension extends Hold {
  /** What the handler last reported; null: nothing new, and the last report stays. */
  progress: Encoded | null
}

/**
 * Outcome of an operation on a claim. `stale`: the claim is over; nothing was changed. `held`, only where the call was `deferred`: another
 * transaction has what the job needs, and nothing was changed.
 */
export type HoldOutcome = 'ok' | 'held' | 'stale'
/** `full`: of a park, whose entries would outgrow the bounds of a journal. */
export type ReleaseOutcome = HoldOutcome | 'full'
/**
 * `retry`: the job is waiting or scheduled again. `dead`: no attempt is left. `stale`, `held`: see `HoldOutcome`. `full`, of RabbitMQ:
 * there is no room for the dead job; the claim holds as before.
 */
export type FailOutcome = 'retry' | 'dead' | 'held' | 'stale' | 'full'
/**
 * `held`: another transaction has the job, and nothing was changed.
 * `cancelled`: stale, because a cancel has ended this claim.
 */
export type ExtendOutcome = 'ok' | 'held' | 'stale' | 'cancelled'

/** What has become of a job. */
export type JobOutcome = Pick<JobRecord, 'id' | 'queue' | 'state' | 'attempt' | 'attempts' | 'result' | 'error'>

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
  /** Of its last claim; 0: it was never claimed. A job that is restored goes on from it. */
  fence: number
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
  /** The last lines of its log; unset: it has none. `src/values/job-log.ts` reads and writes them. */
  log?: readonly string[]
  /** For how long its key is remembered; unset: it is not. */
  unique?: Unique
  /** Of a blocked job: for how many jobs it still waits. */
  waitsFor?: number
  /** Of a blocked job; unset: `cancel`. */
  onDead?: OnDead
  /** Only for `restore` of a blocked job: the jobs that it waits for. */
  after?: readonly string[]
  /** true: it waits for the end of the job that has its key. `dueAt` is then the time from which it may start. */
  follows?: boolean
  /** How many entries its journal has; unset: none. */
  journal?: number
  /** Of a parked job: what it waits for, as its last park said. */
  parked?: string
  /** Only for `restore`: its journal. */
  entries?: readonly NewEntry[]
}
