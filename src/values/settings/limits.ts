/** What a store keeps and tells of limits; `contract/operations.md`, "Limits and turns", says what they do. */

import { DEFAULTS } from './contract-defaults.ts'
/** The most that a limit of running jobs may be: `contract/operations.md`, "Bounds". */
export const MAX_RUNNING = DEFAULTS.bounds.running.most

/** Most starts in a time; see `values/rate.ts`. */
export interface Rate {
  count: number
  /** Milliseconds. */
  per: number
  /** Starts that may come at once after a pause; null: those of 100 ms, at least 1. */
  burst: number | null
}

/** What a group has of its own, instead of the queue's settings for groups. */
export interface GroupLimits {
  /** null: as the queue has it. */
  running: number | null
  /** null: as the queue has it. */
  rate: Rate | null
  /** Its share of the starts where groups take turns, beside those of other groups: above 0, at most 1000. */
  weight: number
}
export const DEFAULT_GROUP_LIMITS: GroupLimits = DEFAULTS.group

/** A group that has waiting or running jobs, or limits of its own. */
export interface GroupRecord {
  /** Empty: the jobs without a group. */
  group: string
  /** null: as all groups of the queue. */
  limits: GroupLimits | null
  /** How many jobs wait. A store may stop counting at 10,000. */
  waiting: number
  /** How many jobs run. */
  running: number
  /** Milliseconds until its rate or pause allows a start, 0: at once; null: it waits for a slot, or no job of it waits. */
  nextStart: number | null
}

/** The limits of a queue, as its settings have them. */
export interface LimitSettings {
  running: number | null
  rate: Rate | null
  grouped: boolean
  groupRunning: number | null
  groupRate: Rate | null
}

/** What holds a queue's jobs back now. */
export interface HeldBack {
  /** Milliseconds until the queue's rate, or a pause by `ctx.rateLimited`, allows a start; 0: now. null: as many jobs run as may. */
  nextStart: number | null
  /**
   * Groups with waiting jobs that wait for a slot of their own; 0 unless groups take turns. A store may stop counting
   * at 10,000, and leave out groups that no claim has looked at since something happened to them.
   */
  groupsAtLimit: number
  /** Groups with waiting jobs that wait for their rate or the end of their pause; counted alike. */
  groupsHeld: number
}
