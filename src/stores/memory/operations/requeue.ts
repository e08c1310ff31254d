import type { Requeued, RequeueRequest } from '../../../values/operations/requests.ts'
import { type Job, ORIGIN } from '../job.ts'
import type { MemoryState } from '../state.ts'

export function requeue(state: MemoryState, request: RequeueRequest): Requeued {
  const now = state.now()
  const jobs =
    'ids' in request
      ? request.ids.map((id) => state.jobs.get(id))
      : [...(state.queues.get(request.queue)?.finished.dead ?? [])]
  const { limit, until = Number.POSITIVE_INFINITY } = 'ids' in request ? { limit: jobs.length } : request
  const last = until - ORIGIN
  const back: Job[] = []
  for (const job of jobs) {
    if (back.length >= limit) break
    if (job?.state !== 'dead' && job?.state !== 'cancelled') continue
    if (job.finishedAt > last || (job.finishedAt === last && job.dueAt >= last)) continue
    if (!state.findOrCreate(job.queue).requeue(job, now)) continue
    if ('ids' in request && request.forget !== undefined) job.journal?.forget(request.forget)
    back.push(job)
  }
  for (const job of back) if (!state.graph.cameBack(job)) state.bells.ring('work', job.queue)
  return { requeued: back.length, now: ORIGIN + now }
}
