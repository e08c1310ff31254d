/** What `move` is told, and what it tells. */
import type { Store } from '../store.ts'
import type { MillpondError } from '../values/errors/errors.ts'
import { checkOptions, isBoolean, isFunction, isSignal } from '../values/options/options.ts'
import { checkQueueName } from '../values/settings/names.ts'
import type { MoveProgress } from './pace.ts'
import type { Counts } from './source.ts'
import type { LeftReason } from './target.ts'

/** The URL of a store, or several, as of `Millpond.open`; or that of a rival's data; or an open store, which stays open. */
export type MoveEnd = string | URL | readonly (string | URL)[] | Store

export interface MoveOptions {
  /** Only these queues; all unless set. */
  queues?: readonly string[]
  /** Goes on until `signal` is aborted, with all that still comes to the source. false unless set. */
  follow?: boolean
  /** Only counts. false unless set. */
  dryRun?: boolean
  /** Gives the target the settings, pauses and limits of the queues, and the schedules. true unless set. */
  settings?: boolean
  /**
   * Messages of other programs, from RabbitMQ, become jobs with the data `{ headers, data }`; false: with their body alone. true unless
   * set.
   */
  headers?: boolean
  /** Ends the move after the batches that are under way. What was moved by then is whole. */
  signal?: AbortSignal
  /** Called about once a second. */
  onProgress?: (progress: MoveProgress) => void
  /** Called with what failed and is tried again. */
  onTrouble?: (error: MillpondError) => void
}

export interface MovedQueue {
  queue: string
  /** How many jobs the source had at the start, by state. */
  found: Counts
  /** How many jobs came to the target, by the state in which they came. */
  moved: Counts
  /** Jobs that the target had already, of a run that ended in the middle. */
  repeated: number
  /**
   * Jobs that stay at the source, by reason: the code of the error, `full`, or `KeyTaken` where another
   * live job of the target has their key.
   */
  left: Partial<Record<LeftReason, number>>
  /** The first 100 of them. */
  leftJobs: LeftJob[]
}

/** A job that stays at the source. */
export interface LeftJob {
  id: string
  reason: LeftReason
  why: string
}

export interface MoveReport {
  queues: MovedQueue[]
  moved: number
  repeated: number
  left: number
  /** How many schedules the target has got; of a dry run, how many there are. */
  schedules: number
  /** Jobs that the source has at the end, `left` and those that came after the start included. */
  remaining: number
  /** How long it took, in milliseconds. */
  ms: number
  /** The signal ended it. */
  stopped: boolean
}

/** @throws InvalidOption, InvalidName */
export function checkedMoveOptions(options: MoveOptions | undefined): MoveOptions {
  const given = checkOptions<MoveOptions>(
    options,
    {
      queues: (value) => (Array.isArray(value) && value.length > 0) || 'a list of names',
      ...{ follow: isBoolean, dryRun: isBoolean, settings: isBoolean, headers: isBoolean },
      ...{ signal: isSignal, onProgress: isFunction, onTrouble: isFunction },
    },
    'move',
  )
  for (const queue of given.queues ?? []) checkQueueName(queue)
  return given
}
