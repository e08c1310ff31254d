import type { MemoryState } from '../state.ts'

type Request = { ids: readonly string[] } | { queue: string; limit: number }

export function requeue(state: MemoryState, request: Request): number {
  const now = state.now()
  const jobs =
    'ids' in request
      ? request.ids.map((id) => state.jobs.get(id))
      : [...(state.queues.get(request.queue)?.finished.dead ?? [])]
  const limit = 'ids' in request ? jobs.length : request.limit
  let count = 0
  for (const job of jobs) {
    if (count >= limit) break
    if (job?.state !== 'dead' && job?.state !== 'cancelled') continue
    if (!state.findOrCreate(job.queue).requeue(job, now)) continue
    state.bells.ring('work', job.queue)
    count++
  }
  return count
}
