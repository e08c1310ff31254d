/** Workers, as `pond.workers` tells of them. */
import type { WorkerRecord } from '../store.ts'

/** A worker that was heard of in the last minute. One that claims from several queues has an entry for each. */
export interface WorkerInfo {
  /** As `worker` of its jobs. */
  id: string
  queue: string
  /** The name of its machine. */
  host: string
  /** The number of its process. */
  pid: number
  /** How many jobs, or batches, it runs at once. */
  slots: number
  /** How many of them were taken when it was last heard of. */
  busy: number
  /** When it was first heard of, by the store's clock. */
  since: Date
  /** When it was last heard of: at least every 15 s while it lives. */
  seen: Date
}

export const workerInfo = ({ since, seen, ...worker }: WorkerRecord): WorkerInfo => ({
  ...worker,
  since: new Date(since),
  seen: new Date(seen),
})
