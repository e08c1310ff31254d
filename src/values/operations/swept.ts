/** What `sweep` tells. */
import type { ScheduleRecord } from '../schedules/records.ts'

export interface Swept {
  /** Jobs whose lease ran out. `attempt`: the lost attempt. `state`: the job waits again, or is dead. */
  lost: { id: string; queue: string; attempt: number; state: 'waiting' | 'dead' }[]
  /** How many scheduled jobs became waiting. */
  promoted: number
  /** How many finished jobs were removed. May exceed the limit, where a store drops many at once. */
  expired: number
  /** A limit was reached: sweep again at once. */
  more: boolean
  /**
   * Milliseconds until the next scheduled job is due, 0 if one is overdue, or the next schedule that is not due yet fires; null: there is
   * neither.
   */
  nextDue: number | null
  /** How many queues there are. */
  queues: number
  /** Schedules that are due at the store's `now`, longest due first, 100 at most; null: none is. */
  schedules: { now: number; due: ScheduleRecord[] } | null
}
