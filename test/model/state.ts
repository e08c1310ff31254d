/** What the model keeps. */
import type { ClaimedJob, JobRecord, JobState, NewJob } from '../../src/values/jobs/records.ts'
import type { QueueStats, Totals } from '../../src/values/operations/requests.ts'
import type { GroupLimits } from '../../src/values/settings/limits.ts'
import type { QueueSettings } from '../../src/values/settings/settings.ts'
import type { Rated } from './rates.ts'

export const MINUTE = 60_000

export interface ModelJob extends JobRecord {
  leaseUntil: number
  /** It was kept long enough, but for a live child. */
  isKept?: boolean
}

export interface ModelGroup extends Rated {
  group: string
  limits: GroupLimits | null
  /** Per priority. */
  virtual: number[]
  pausedUntil: number
  startedAt: number
  /** The priority of its first job at the end of the last claim, if it was eligible then; else -1. */
  ticket: number
}

/** `capacity` undefined: never configured, and so the store's own. */
export type ModelQueue = Required<Omit<QueueSettings, 'capacity' | 'grouped'>> &
  Rated & {
    capacity: number | null | undefined
    grouped: boolean
    totals: Totals
    groups: ModelGroup[]
    virtual: number[]
    pausedUntil: number
  }

export const DEFAULTS = {
  capacity: undefined,
  keepDone: 60 * MINUTE,
  keepDead: 7 * 24 * 60 * MINUTE,
  paused: false,
  attempts: 10,
  timeout: null,
  lease: 30_000,
  backoff: { base: 1000, factor: 2, max: 60 * MINUTE, jitter: 0.5 },
  running: null,
  rate: null,
  grouped: false,
  groupRunning: null,
  groupRate: null,
}

export type ModelStats = Omit<QueueStats, 'capacity' | 'overrides' | 'lastClaim'> & {
  capacity: number | null | undefined
}

const newTotals = (): Totals => ({ pushed: 0, done: 0, failed: 0, dead: 0, cancelled: 0, lost: 0, released: 0 })

export function newQueue(queue: string): ModelQueue {
  const virtual = new Array<number>(10).fill(0)
  return { queue, ...DEFAULTS, totals: newTotals(), groups: [], virtual, full: 0, fullCost: 1, pausedUntil: 0 }
}

export const live = (job: ModelJob | undefined) => job?.finishedAt === null

/** In effect. */
export const settingsOf = (queue: ModelQueue) => {
  const { capacity, keepDone, keepDead, paused, attempts, timeout, lease, backoff } = queue
  const { running, rate, grouped, groupRunning, groupRate } = queue
  return {
    ...{ capacity, keepDone, keepDead, paused, attempts, timeout, lease, backoff },
    ...{ running, rate, grouped, groupRunning, groupRate },
  }
}

export const countsOf = (count: (state: JobState) => number): Record<JobState, number> => ({
  ...{ blocked: count('blocked'), scheduled: count('scheduled'), waiting: count('waiting'), running: count('running') },
  ...{ done: count('done'), dead: count('dead'), cancelled: count('cancelled') },
})

/** A job just pushed. */
export function newJob(
  { delay: _, runAt: __, once, after: ___, onDead: ____, partOf: _____, ...job }: NewJob,
  own: Pick<JobRecord, 'attempts' | 'timeout'>,
  { dueAt, follows, now }: { dueAt: number; follows: boolean; now: number },
): ModelJob {
  return {
    ...job,
    ...own,
    cost: job.cost ?? 1,
    ...(once?.unique && { unique: once.unique }),
    ...(follows && { follows }),
    state: follows || dueAt > now ? 'scheduled' : 'waiting',
    ...{ attempt: 0, fence: 0, pushedAt: now, dueAt, startedAt: null, finishedAt: null, leaseUntil: 0, worker: null },
    ...{ progress: null, result: null, error: null },
  }
}

/** As a list has them. Of jobs that follow others, no time is known. */
export function inOrder(state: JobState, jobs: ModelJob[]): ModelJob[] {
  const time = ({ follows, dueAt }: ModelJob) => (follows ? Number.MAX_SAFE_INTEGER : dueAt)
  if (state === 'blocked') return jobs
  if (state === 'waiting') return jobs.sort((a, b) => b.priority - a.priority)
  if (state === 'scheduled') return jobs.sort((a, b) => time(a) - time(b))
  if (state === 'running') return jobs.sort((a, b) => a.leaseUntil - b.leaseUntil)
  return jobs.sort((a, b) => (b.finishedAt ?? 0) - (a.finishedAt ?? 0))
}

/** As a claim gives it. */
export function claimOf(job: ModelJob): ClaimedJob {
  const { id, fence, attempt, attempts, priority, group, key, timeout, trace, pushedAt, dueAt, data } = job
  return { id, fence, attempt, attempts, priority, group, key, timeout, trace, pushedAt, dueAt, data }
}

export function recordOf(job: ModelJob | undefined): JobRecord | null {
  if (job === undefined) return null
  const { leaseUntil: _, isKept: __, ...record } = job
  return record
}
