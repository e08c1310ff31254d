/** What a key does beyond "one live job": contract/operations.md, "Once for a while". Shared by the stores. */
import type { NewJob, Once, Unique } from './records.ts'

/** `dueAt` of a follower in the stores, in milliseconds since 1970: no time brings it about. */
export const NEVER = 2 ** 48 - 1

/** Until when the key of a job that has ended is remembered, in the unit and from the origin of its times. */
export const rememberedUntil = ({ for: time, since }: Unique, pushedAt: number, endedAt: number): number =>
  (since === 'push' ? pushedAt : endedAt) + time

/** The latest time at which a job is due that was first pushed at `pushedAt`. */
export const latestDue = (once: Once | undefined, pushedAt: number): number =>
  once?.maxWait === undefined ? Number.POSITIVE_INFINITY : pushedAt + once.maxWait

/** As SQL and Lua keep it: milliseconds after the end, or, below 0, after the push; null: not remembered. */
export const storedUnique = (unique: Unique | undefined): number | null =>
  unique === undefined ? null : unique.since === 'push' ? -unique.for : unique.for

/** The fields of a record. */
export function uniqueFrom(stored: number | null | undefined): { unique?: Unique } {
  if (stored === null || stored === undefined) return {}
  return { unique: stored < 0 ? { for: -stored, since: 'push' } : { for: stored, since: 'end' } }
}

/** Whether a job that has the key may be changed by this push, or followed. */
export const meetsAgain = ({ once }: NewJob): boolean => once?.replace === true || once?.follow === true
