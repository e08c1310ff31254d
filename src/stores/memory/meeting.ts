/** What a push finds under its key. */
import type { NewJob, PushOutcome } from '../../values/jobs/records.ts'
import { waits } from '../jobs.ts'
import type { Job } from './job.ts'
import type { MemoryQueue } from './queue.ts'

export const FOLLOWS = 'follows'

/** @returns a job that it replaces, FOLLOWS, or the answer `existing` or `held`; undefined: nothing */
export function meet(
  queue: MemoryQueue,
  job: NewJob,
  key: string,
  now: number,
): PushOutcome | Job | typeof FOLLOWS | undefined {
  const status = waits(job) ? 'held' : 'existing'
  const { replace = false, follow = false } = status === 'held' ? {} : (job.once ?? {})
  const holder = queue.keys.get(key)
  if (holder === undefined) {
    const id = queue.once.remembered(key, now)
    return id === undefined ? undefined : { status, id }
  }
  const follower = replace || follow ? queue.once.follower(key) : undefined
  const replaced = follower ?? (replace && holder.state !== 'running' ? holder : undefined)
  if (replaced !== undefined) return replaced
  return follow && holder.state === 'running' ? FOLLOWS : { status, id: holder.id }
}
