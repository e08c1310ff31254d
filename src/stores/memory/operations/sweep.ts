import type { Input } from '../../../store.ts'
import type { Swept } from '../../../values/operations/swept.ts'
import { Groups } from '../groups.ts'
import { ORIGIN } from '../job.ts'
import type { MemoryQueue } from '../queue.ts'
import type { MemoryState } from '../state.ts'

export function sweep(state: MemoryState, { limit }: Input<'sweep'>): Swept {
  const now = state.now()
  const swept: Swept = { lost: [], promoted: 0, expired: 0, more: false, nextDue: null, queues: 0, schedules: null }
  let forgotten = 0
  for (const queue of state.queues.values()) {
    swept.promoted += promote(state, queue, now, limit - swept.promoted)
    swept.lost.push(...takeBack(state, queue, now, limit - swept.lost.length))
    swept.expired += queue.expire(now, limit - swept.expired)
    queue.histograms.expire(ORIGIN + now)
    forgotten += queue.once.expire(now, limit - forgotten)
    if (queue.waiting instanceof Groups) forgotten += queue.waiting.forgetIdle(now, limit - forgotten)
    const due = queue.nextDueIn(now)
    if (due !== null) swept.nextDue = Math.min(swept.nextDue ?? due, due)
  }
  state.workers.forgetSilent(now)
  const { nextAt, due } = state.schedules.due(ORIGIN + now)
  if (nextAt !== null) swept.nextDue = Math.min(swept.nextDue ?? Number.POSITIVE_INFINITY, nextAt - ORIGIN - now)
  if (due.length > 0) swept.schedules = { now: ORIGIN + now, due }
  swept.queues = state.queues.size
  const isLeft = state.graph.sweep()
  swept.more = isLeft || Math.max(swept.promoted, swept.lost.length, swept.expired, forgotten) >= limit
  return swept
}

function promote(state: MemoryState, queue: MemoryQueue, now: number, limit: number): number {
  let count = 0
  for (; count < limit; count++) {
    const job = queue.scheduled.first
    if (job === undefined || job.dueAt > now) break
    queue.wait(job)
    state.bells.ring('work', queue.name)
  }
  return count
}

function takeBack(state: MemoryState, queue: MemoryQueue, now: number, limit: number): Swept['lost'] {
  return queue.endedLeases(now, limit).map((job) => {
    const { id, attempt } = job
    const outcome = attempt >= job.attempts ? 'dead' : 'waiting'
    queue.totals.lost++
    if (outcome === 'dead') {
      job.error = { code: 'LeaseLost', name: 'MillpondError', message: `Worker ${job.worker} fell silent.` }
      queue.finish(job, 'dead', now)
      state.ended(queue, job)
    } else {
      job.dueAt = now
      queue.wait(job)
      state.bells.ring('work', queue.name)
    }
    return { id, queue: queue.name, attempt, state: outcome }
  })
}
