/**
 * Jobs that follow another one by its key. One stays at the source while it follows there, and goes when that job has ended or left:
 *
 *   the job that it follows ──ends at the source──► it has the key, and goes as any other job
 *                           └─ is moved ──────────► it has the key at the source, and goes as a follower: at the target it follows again
 */
import type { JobRecord } from '../values/jobs/records.ts'

export class Followers {
  /** Of live jobs that were moved. Only a job that has been claimed can have a follower, so these are few. */
  readonly #keys = new Set<string>()

  /** As the target is to store it: if the job that was moved still has the key there, behind that one. */
  ofTarget(record: JobRecord): JobRecord {
    const { queue, key, state } = record
    const canFollow = state === 'waiting' || state === 'scheduled'
    if (key === null || !canFollow || this.#keys.size === 0 || !this.#keys.has(nameOf(queue, key))) return record
    return { ...record, state: 'scheduled', follows: true }
  }

  /** The target has it. */
  went({ queue, key, state, fence }: JobRecord): void {
    const isLive = state === 'blocked' || state === 'scheduled' || state === 'waiting'
    if (key !== null && isLive && fence > 0) this.#keys.add(nameOf(queue, key))
  }
}

/** Names of queues have no spaces. */
const nameOf = (queue: string, key: string): string => `${queue} ${key}`
