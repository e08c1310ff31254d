import type { Input } from '../../../store.ts'
import type { QueueStats } from '../../../values/operations/requests.ts'
import { ORIGIN } from '../job.ts'
import type { MemoryState } from '../state.ts'

export function stats(state: MemoryState, { queue: only, minutes = 0 }: Input<'stats'>): QueueStats[] {
  const now = state.now()
  return [...state.queues.values()]
    .filter((queue) => only === undefined || only === queue.name)
    .map((queue) => {
      const oldest = queue.waiting.oldestDue()
      return {
        queue: queue.name,
        paused: queue.settings.paused,
        capacity: queue.settings.capacity,
        overrides: structuredClone(queue.given.operator),
        lastClaim: queue.heardAt === null ? null : Math.max(0, now - queue.heardAt),
        counts: queue.counts(),
        totals: { ...queue.totals },
        oldestWaiting: oldest === null ? null : now - oldest,
        limits: queue.limits,
        ...queue.heldBack(now),
        histograms: queue.histograms.merged(minutes, ORIGIN + now),
      }
    })
}

export function record(state: MemoryState, { slices }: Input<'record'>): void {
  const now = ORIGIN + state.now()
  for (const slice of slices) state.queues.get(slice.queue)?.histograms.record(slice, now)
}
