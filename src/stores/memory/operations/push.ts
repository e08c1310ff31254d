import type { Input, NewJob, PushOutcome } from '../../../store.ts'
import { SOON } from '../../bells.ts'
import { Job, ORIGIN } from '../job.ts'
import type { MemoryQueue } from '../queue.ts'
import type { MemoryState } from '../state.ts'

export function push(state: MemoryState, { jobs }: Input<'push'>): PushOutcome[] | Promise<PushOutcome[]> {
  const outcomes = pushNow(state, jobs)
  return state.tick.mayEnd()?.then(() => outcomes) ?? outcomes
}

export function pushNow(state: MemoryState, jobs: readonly NewJob[]): PushOutcome[] {
  const now = state.now()
  const outcomes: PushOutcome[] = []
  let queue: MemoryQueue | undefined
  for (const job of jobs) {
    if (queue?.name !== job.queue) queue = state.findOrCreate(job.queue)
    outcomes.push(pushOne(state, queue, job, now))
  }
  return outcomes
}

function pushOne(state: MemoryState, queue: MemoryQueue, job: NewJob, now: number): PushOutcome {
  const known = job.fresh === true ? undefined : state.jobs.get(job.id)
  const existing = known ?? (job.key === null ? undefined : queue.keys.get(job.key))
  if (existing !== undefined) return { status: 'existing', id: existing.id }
  if (queue.isFull) return { status: 'full', id: job.id }
  const dueAt = Math.max(now, job.runAt === null ? now + job.delay : job.runAt - ORIGIN)
  const stored = new Job(job, queue.settings, state.places++, now, dueAt)
  stored.fence = state.removedFence
  queue.totals.pushed++
  state.jobs.add(stored)
  queue.add(stored)
  if (dueAt < now + SOON) state.bells.ring('work', queue.name)
  return { status: 'pushed', id: job.id }
}
