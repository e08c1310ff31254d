/** Workers, as `pond.workers` tells of them. */

import { silentFor } from '../values/figures/worker-text.ts'
import type { Lane, WorkerRecord } from '../values/operations/requests.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'

/** Milliseconds: two heartbeats were missed. */
const SILENT = 2 * DEFAULTS.heartbeat.every

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
  /** The slots that it keeps for urgent jobs, the highest priority first; null: none, or its process is too old to tell. */
  lanes: readonly Lane[] | null
  /** When it was first heard of, by the store's clock. */
  since: Date
  /** When it was last heard of: at least every 15 s while it lives. */
  seen: Date
  /** Milliseconds since then, by the store's clock. */
  silence: number
  /** It missed two heartbeats: it may have been killed, and its jobs come back when their leases end. */
  silent: boolean
}

export const workerInfo = ({ since, seen, ...worker }: WorkerRecord): WorkerInfo => ({
  ...worker,
  since: new Date(since),
  seen: new Date(seen),
  silent: isSilent(worker),
})

/** Such as `1 of 3 workers is silent since 42 s`. undefined: none is. @param workers those of a queue */
export function silentText(workers: readonly Pick<WorkerRecord, 'silence'>[]): string | undefined {
  const silent = workers.filter(isSilent)
  if (silent.length === 0) return undefined
  const longest = Math.max(...silent.map(({ silence }) => silence))
  const some = `${silent.length} of ${workers.length} workers ${silent.length === 1 ? 'is' : 'are'}`
  return `${workers.length === 1 ? 'its only worker is' : some} ${silentFor(longest)}`
}

/**
 * The slots of those workers of a queue that are not silent, and how many are taken. A heartbeat tells of busy ones every 15 s, and the
 * store knows how many jobs run now: the greater counts.
 */
export function slotsOf(
  workers: readonly Pick<WorkerRecord, 'slots' | 'busy' | 'silence'>[],
  running: number,
): { slots: number; taken: number } {
  const [silent, alive] = [workers.filter(isSilent), workers.filter((one) => !isSilent(one))]
  const sum = (some: typeof workers, figure: 'slots' | 'busy') => some.reduce((total, one) => total + one[figure], 0)
  const slots = sum(alive, 'slots')
  return { slots, taken: Math.min(slots, Math.max(sum(alive, 'busy'), running - sum(silent, 'busy'))) }
}

export const isSilent = ({ silence }: Pick<WorkerRecord, 'silence'>): boolean => silence > SILENT
