/** Inputs and outputs of the operations on schedules. A store knows of their times only the next one; the rest is text to it. */
import type { NewJob, PushOutcome } from '../jobs/records.ts'

/**
 * What to do about times that nobody was there to fire: `once`, fire the last of them; `skip`, fire none that is over a
 * minute old; `all`, fire each, the last 1,000 at most.
 */
export type Missed = 'once' | 'skip' | 'all'
export const MISSED: readonly Missed[] = ['once', 'skip', 'all']

/** When a schedule fires. Times are milliseconds since 1970. */
export interface Timing {
  /** A cron line of 5 or 6 fields, a name such as `@daily`, or `every 90s`. */
  when: string
  /** The IANA time zone of a cron line. */
  tz: string
  missed: Missed
  /** A job is due up to so many milliseconds after its time. */
  jitter: number
  /** The first and the last moment at which it may fire; null: none. Intervals are counted from `from`, else from 1970. */
  from: number | null
  until: number | null
}

/** The times at which a schedule fires. */
export interface Times {
  /** The first time after this one; null: there is none. */
  after(ms: number): number | null
  /** The last `count` times before this one, in order. */
  before(ms: number, count: number): number[]
}

/** What a schedule pushes: a job without what each firing makes anew. */
export type ScheduledJob = Required<
  Pick<NewJob, 'queue' | 'priority' | 'key' | 'group' | 'cost' | 'attempts' | 'timeout' | 'data'>
>

export interface Declaration extends Timing {
  name: string
  /** Differs whenever anything declared differs: `versionOf`. */
  version: string
  /** Counts only when the schedule is made. */
  paused: boolean
  job: ScheduledJob
  /** true: the process has declared it before and tells that it still does. It is not made again, should it have been removed. */
  again: boolean
}

/**
 * - `created`, `changed`: it is as declared now;
 * - `same`: it was;
 * - `kept`: another version has replaced this one, and is still declared; nothing changed;
 * - `unknown`: it was removed.
 */
export const DECLARE_OUTCOMES = ['created', 'changed', 'same', 'kept', 'unknown'] as const
export type DeclareOutcome = (typeof DECLARE_OUTCOMES)[number]

export interface ScheduleRecord extends Timing {
  name: string
  version: string
  paused: boolean
  /**
   * false: since `nextAt` nobody has computed when it fires. The next sweep tells of it, and `fire` without jobs plans it.
   * true: `nextAt` is when it fires next.
   */
  planned: boolean
  /** null: it never fires again. */
  nextAt: number | null
  /** When a declaration last changed it. */
  changedAt: number
  /** Whether a process has declared it in the last 90 s. */
  declared: boolean
  /** When it last fired; null: not yet. */
  lastAt: number | null
  job: ScheduledJob
}

export interface Firing {
  name: string
  /** What the sweep told of it was of this version. */
  version: string
  /** Its next time, as the sweep told. */
  expected: number
  /** The time after; null: it does not fire again. */
  next: number | null
  /** None, where the times are missed. */
  jobs: readonly NewJob[]
}

/**
 * `stale`: its next time or version is another one by now, or it is paused or gone. `full`: its queue has no room. Then nothing
 * changed.
 */
export type FireOutcome = { status: 'fired'; jobs: PushOutcome[] } | { status: 'stale' | 'full' }
