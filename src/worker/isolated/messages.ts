/**
 * What a worker and the processes of its handler tell each other, over the channel that Node gives to a child process.
 *
 *   worker                       process
 *   load ──────────────────────► starts the watchdog, imports the module
 *        ◄────────── loaded, or refused: then the process ends
 *   run ───────────────────────► calls the handler
 *        ◄────────── progress and log, as often as the handler reports and logs
 *        ◄────────── ask: for its parents, for what its steps keep
 *   told ──────────────────────► answers that
 *   abort ─────────────────────► aborts the signal of a job
 *        ◄────────── answered: the process is free for the next call
 *
 *        ◄────────── late: an earlier call threw; the process is replaced after the present one
 *
 * One call is under way at a time. The handler's module may use the same channel: the process shows the token that only the worker and it
 * know, and says which call it speaks of. A message without them, or of an earlier call, is none of these.
 */

import type { JobFacts } from '../../values/jobs/job.ts'
import type { ParentJob } from '../../values/jobs/parent-jobs.ts'
import type { Encoded, Entry, NewEntry, Park } from '../../values/jobs/records.ts'
import type { ChildRecord } from '../steps/journal-calls.ts'

/** What all messages to a process have. */
const MARK = 'millpond'

/** The first message, which has the code of the process beside it. */
export interface First {
  code: string
  load: Load
}

export interface Load {
  /** The module's URL. */
  module: string
  limits: Limits
  /** The handler takes several jobs at once. */
  batch: boolean
  /** Bytes of an encoded result or progress report. */
  maxPayload: number
  /** What `ctx.rateLimited` is refused with; null: the store has rates. */
  lacksRates: string | null
  /** Comes with all that the process says on the channel and the watchdog on stderr, so that nothing else is taken for their word. */
  token: string
}

/** Of one process, while a call is under way; `memory` also while the module loads. null: no limit. */
export interface Limits {
  /** Bytes. */
  memory: number | null
  /** Milliseconds of CPU time, of all threads. */
  cpu: number | null
}

export interface Run {
  millpond: 'run'
  /** Counts from 1. */
  call: number
  jobs: readonly JobMessage[]
}

/** What a handler sees of a claim, and its data: decoded, and as the schema puts it out. */
export interface JobMessage extends JobFacts {
  queue: string
  data: unknown
}

export interface Abort {
  millpond: 'abort'
  /** The place of the job in `jobs`. */
  at: number
  reason: ErrorMessage
}

/** What a handler asks the worker, by name, and what it gets. */
export interface Asked {
  parents: { given: undefined; told: readonly ParentJob[] }
  write: { given: readonly NewEntry[]; told: undefined }
  read: { given: undefined; told: { entries: Entry[]; now: number } }
  find: { given: string; told: ChildRecord | null }
}
export type AskedName = keyof Asked

/** Answers the question of this number. */
export interface Told {
  millpond: 'told'
  question: number
  answer: Asked[AskedName]['told'] | null
  /** Why there is none. */
  error: ErrorMessage | null
}

export type ToProcess = Run | Abort | Told

/** What a process says of a call; 0: of loading the module. */
export interface Said {
  token: string
  call: number
  message: FromProcess
}

export type FromProcess =
  | { millpond: 'loaded'; memory: number }
  | { millpond: 'refused'; error: ErrorMessage }
  | { millpond: 'progress'; at: number; value: Encoded }
  | { millpond: 'log'; at: number; lines: readonly string[] }
  | { millpond: 'ask'; at: number; question: number; what: AskedName; given: Asked[AskedName]['given'] }
  | { millpond: 'late' }
  | { millpond: 'answered'; answers: readonly AnswerMessage[]; memory: number }

/** Of one job. */
export type AnswerMessage =
  | { is: 'result'; result: Encoded | null }
  | { is: 'error'; error: ErrorMessage }
  | { is: 'parked'; park: Park }
  | { is: 'outcome'; kind: 'retry' | 'giveUp' | 'rateLimited'; delay: number; reason: ErrorMessage | string }

/** An error, as far as it is copied to another process. */
export interface ErrorMessage {
  name: string
  message: string
  stack: string | undefined
  code: string | number | undefined
  cause: ErrorMessage | undefined
}

/** Only the worker writes to the process, so the mark is enough. */
export const isToProcess = (message: unknown): message is ToProcess =>
  typeof message === 'object' && message !== null && MARK in message

export const isSaid = (message: unknown, token: string): message is Said =>
  typeof message === 'object' && message !== null && 'token' in message && message.token === token
