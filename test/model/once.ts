/** Keys that are remembered, replace jobs or make them follow, as plainly as it can be put. */
import type { JobRecord, NewJob } from '../../src/values/jobs/records.ts'
import { live, type ModelJob } from './state.ts'

interface Remembered {
  queue: string
  key: string
  id: string
  until: number
}

export class ModelKeys {
  remembered: Remembered[] = []

  forgetQueue(name: string): void {
    this.remembered = this.remembered.filter(({ queue }) => queue !== name)
  }

  /** Of a job that has ended and is removed. Another job had its id before, perhaps with a key of its own. */
  forget({ queue, key, id }: JobRecord): void {
    this.remembered = this.remembered.filter((one) => one.queue !== queue || one.key !== key || one.id !== id)
  }

  find(queue: string, key: string | null, now: number): Remembered | undefined {
    return this.remembered.find((one) => one.queue === queue && one.key === key && one.until > now)
  }

  /** A live job has the key from now on. */
  take({ queue, key }: { queue: string; key: string | null }): void {
    this.remembered = this.remembered.filter((one) => one.queue !== queue || one.key !== key)
  }

  remember({ queue, key, id, unique, pushedAt }: JobRecord, endedAt: number, now: number): void {
    if (key === null || unique === undefined) return
    const until = (unique.since === 'push' ? pushedAt : endedAt) + unique.for
    if (until <= now || until <= (this.find(queue, key, now)?.until ?? now)) return
    this.take({ queue, key })
    this.remembered.push({ queue, key, id, until })
  }

  /** A live job has ended, for good. */
  leave(job: ModelJob, jobs: readonly ModelJob[], hasAnswer: boolean, now: number): void {
    if (job.key === null) return
    if (job.follows) {
      delete job.follows
      return
    }
    const follower = followerOf(jobs, job)
    if (follower !== undefined) {
      follower.dueAt = Math.max(now, follower.dueAt)
      delete follower.follows
    } else if (hasAnswer) this.remember(job, now, now)
  }
}

export const followerOf = (jobs: readonly ModelJob[], { queue, key }: { queue: string; key: string | null }) =>
  jobs.find((job) => job.queue === queue && job.key === key && job.follows && live(job))

/** When a job is due that was first pushed at `pushedAt`. */
export function dueOf({ delay, runAt, once }: NewJob, pushedAt: number, now: number): number {
  const latest = once?.maxWait === undefined ? Number.POSITIVE_INFINITY : pushedAt + once.maxWait
  return Math.max(now, Math.min(runAt ?? now + delay, latest))
}
