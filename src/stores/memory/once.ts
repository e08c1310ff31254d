/**
 * The keys of a queue that do more than hold one live job: those that are remembered, and those with a follower.
 *
 * The live job that has a key is in `keys` of the queue. Its end gives the key to its follower, or to memory, or frees it.
 */

import { NEVER, rememberedUntil } from '../../values/jobs/once.ts'
import type { Unique } from '../../values/jobs/records.ts'
import type { Heap } from './heap.ts'
import { type Job, ORIGIN } from './job.ts'

/** Times are those of the memory store. */
interface Remembered {
  id: string
  until: number
}

/** `dueAt` of a follower. */
export const NEVER_DUE = NEVER - ORIGIN

export class OnceKeys {
  readonly #remembered = new Map<string, Remembered>()
  /** No key's time has come before this one: so most sweeps look at none of them. */
  #soonest = Number.POSITIVE_INFINITY
  readonly #followers = new Map<string, Job>()

  /** The job that has the key in memory. */
  remembered(key: string, now: number): string | undefined {
    const known = this.#remembered.get(key)
    return known !== undefined && known.until > now ? known.id : undefined
  }

  follower(key: string): Job | undefined {
    return this.#followers.get(key)
  }

  /** A follower has been stored. */
  follow(key: string, job: Job): void {
    this.#followers.set(key, job)
  }

  /** A live job has the key from now on. */
  take(key: string): void {
    this.#remembered.delete(key)
  }

  remember(key: string, id: string, unique: Unique, pushedAt: number, endedAt: number, now: number): void {
    const until = rememberedUntil(unique, pushedAt, endedAt)
    if (until <= now || until <= (this.#remembered.get(key)?.until ?? Number.NEGATIVE_INFINITY)) return
    this.#remembered.set(key, { id, until })
    this.#soonest = Math.min(this.#soonest, until)
  }

  /** The job with this id is removed. */
  forget(key: string, id: string): void {
    if (this.#remembered.get(key)?.id === id) this.#remembered.delete(key)
  }

  /**
   * A live job ends, for good. @param remembers it has an answer
   * @param scheduled where followers are
   */
  end(job: Job, keys: Map<string, Job>, scheduled: Heap<Job>, now: number, remembers: boolean): void {
    const { key } = job
    if (key === null) return
    const follower = this.#followers.get(key)
    if (follower === job) {
      this.#followers.delete(key)
      job.dueAt = job.followDue ?? job.dueAt
      job.followDue = null
    }
    if (keys.get(key) !== job) return
    keys.delete(key)
    if (follower !== undefined) {
      this.#followers.delete(key)
      keys.set(key, follower)
      scheduled.remove(follower)
      follower.dueAt = Math.max(now, follower.followDue ?? now)
      follower.followDue = null
      scheduled.add(follower)
    } else if (remembers && job.unique !== null) {
      this.remember(key, job.id, job.unique, job.pushedAt, now, now)
    }
  }

  /** Forgets up to `limit` keys whose time has come; returns how many. */
  expire(now: number, limit: number): number {
    if (this.#soonest > now) return 0
    let expired = 0
    let soonest = Number.POSITIVE_INFINITY
    for (const [key, { until }] of this.#remembered) {
      if (until > now) {
        soonest = Math.min(soonest, until)
        continue
      }
      if (expired >= limit) return expired
      this.#remembered.delete(key)
      expired++
    }
    this.#soonest = soonest
    return expired
  }
}
