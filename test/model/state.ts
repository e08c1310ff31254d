/** What the model keeps. */
import type { JobRecord, QueueSettings, QueueStats, Totals } from '../../src/store.ts'
import type { GroupLimits } from '../../src/values/limits.ts'
import type { Rated } from './rates.ts'

export const MINUTE = 60_000

export interface ModelJob extends JobRecord {
  leaseUntil: number
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

export const newTotals = (): Totals => ({ pushed: 0, done: 0, failed: 0, dead: 0, cancelled: 0, lost: 0, released: 0 })

export const live = (job: ModelJob) => job.state === 'scheduled' || job.state === 'waiting' || job.state === 'running'

/** In effect. */
export const settingsOf = (queue: ModelQueue) => {
  const { capacity, keepDone, keepDead, paused, attempts, timeout, lease, backoff } = queue
  const { running, rate, grouped, groupRunning, groupRate } = queue
  return {
    ...{ capacity, keepDone, keepDead, paused, attempts, timeout, lease, backoff },
    ...{ running, rate, grouped, groupRunning, groupRate },
  }
}
