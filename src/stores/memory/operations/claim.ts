import type { Claimed, ClaimRequest } from '../../../store.ts'
import { Claim, ORIGIN } from '../job.ts'
import { DEFAULTS } from '../queue.ts'
import type { MemoryState } from '../state.ts'

export function claim(state: MemoryState, { queue: name, worker, limit, lease: asked }: ClaimRequest): Claimed {
  const now = state.now()
  const queue = state.queues.get(name)
  const lease = asked ?? (queue?.settings ?? DEFAULTS).lease
  const claimed: Claimed = { now: ORIGIN + now, lease, jobs: [], retryAfter: null }
  if (queue === undefined || queue.settings.paused) return claimed
  while (claimed.jobs.length < limit) {
    const job = queue.waiting.first
    if (job === null) break
    queue.run(job, worker, now, now + lease)
    claimed.jobs.push(new Claim(job))
  }
  if (claimed.jobs.length > 0) state.bells.ring('room', name)
  if (claimed.jobs.length < limit) claimed.retryAfter = queue.nextDueIn(now)
  return claimed
}
