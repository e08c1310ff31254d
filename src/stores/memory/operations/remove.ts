import type { Input } from '../../../store.ts'
import { JOB_STATES } from '../../../values/jobs/records.ts'
import type { Removed } from '../../../values/operations/requests.ts'
import { isFinal, type Job } from '../job.ts'
import type { MemoryQueue } from '../queue.ts'
import type { MemoryState } from '../state.ts'
import { jobsAfter } from './list.ts'

export function remove(state: MemoryState, request: Input<'remove'>): Removed {
  if ('ids' in request)
    return {
      removed: removeJobs(
        state,
        request.ids.map((id) => state.jobs.get(id)),
      ),
      more: false,
    }
  const queue = state.queues.get(request.queue)
  if (queue === undefined) return { removed: 0, more: false }
  const { limit } = request
  let removed = 0
  for (const each of request.state === undefined ? JOB_STATES : [request.state]) {
    removed += removeJobs(state, first(jobsAfter(queue, each, null), limit - removed))
    if (removed >= limit) return { removed, more: true }
  }
  if (request.state === undefined) {
    removed += removeJobs(state, first(queue.held.keys(), limit - removed))
    if (removed >= limit) return { removed, more: true }
  }
  if (request.state === undefined) state.queues.delete(queue.name)
  return { removed, more: false }
}

function first(jobs: Iterable<Job>, count: number): Job[] {
  const some: Job[] = []
  for (const job of jobs) {
    if (some.length === count) break
    some.push(job)
  }
  return some
}

function removeJobs(state: MemoryState, jobs: readonly (Job | undefined)[]): number {
  let removed = 0
  for (const job of jobs) {
    // An id may be there twice.
    if (job === undefined || state.jobs.get(job.id) !== job) continue
    const queue = state.findOrCreate(job.queue)
    const was = job.state
    state.graph.leaves(job)
    queue.remove(job, state.now())
    state.removedFence = Math.max(state.removedFence, job.fence + 1)
    removed++
    if (!isFinal(was)) ring(state, queue, job)
  }
  return removed
}

/** Who waits for the job looks, and its worker; who waits for its slot or its room. */
function ring(state: MemoryState, queue: MemoryQueue, job: Job): void {
  state.bells.ring('cancelled', queue.name, job.id)
  state.ended(queue, job)
  state.bells.ring('room', queue.name)
}
