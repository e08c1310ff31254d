import type { Requeued, RequeueRequest } from '../../../values/operations/requests.ts'
import { ORIGIN } from '../job.ts'
import type { MemoryState } from '../state.ts'

export function requeue(state: MemoryState, request: RequeueRequest): Requeued {
  const now = state.now()
  const jobs =
    'ids' in request
      ? request.ids.map((id) => state.jobs.get(id))
      : [...(state.queues.get(request.queue)?.finished.dead ?? [])]
  const { limit, until = Number.POSITIVE_INFINITY } = 'ids' in request ? { limit: jobs.length } : request
  const last = until - ORIGIN
  let requeued = 0
  for (const job of jobs) {
    if (requeued >= limit) break
    if (job?.state !== 'dead' && job?.state !== 'cancelled') continue
    if (job.finishedAt > last || (job.finishedAt === last && job.dueAt >= last)) continue
    if (!state.findOrCreate(job.queue).requeue(job, now)) continue
    if ('ids' in request && request.forget !== undefined) job.journal?.forget(request.forget)
    state.bells.ring('work', job.queue)
    requeued++
  }
  return { requeued, now: ORIGIN + now }
}
