import type { Input } from '../../../store.ts'
import type { FinalState } from '../../../values/jobs/records.ts'
import { isFinal } from '../job.ts'
import type { MemoryState } from '../state.ts'

export function cancel(state: MemoryState, { ids }: Input<'cancel'>): (FinalState | null)[] {
  const now = state.now()
  return ids.map((id) => {
    const job = state.jobs.get(id)
    if (job === undefined) return null
    if (isFinal(job.state)) return job.state
    const waited = job.state !== 'running'
    const queue = state.findOrCreate(job.queue)
    state.graph.leaves(job)
    queue.finish(job, 'cancelled', now)
    state.bells.ring('cancelled', job.queue, id)
    state.ended(queue, job)
    if (waited) state.bells.ring('room', job.queue)
    return 'cancelled'
  })
}
