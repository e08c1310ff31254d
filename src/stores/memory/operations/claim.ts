import type { Claimed, ClaimRequest } from '../../../values/jobs/records.ts'
import { Groups } from '../groups.ts'
import { Claim, ORIGIN } from '../job.ts'
import { DEFAULTS } from '../queue.ts'
import type { MemoryState } from '../state.ts'

export function claim(state: MemoryState, request: ClaimRequest): Claimed {
  const { queue: name, worker, limit, minPriority = 0, perGroup = 1 } = request
  const now = state.now()
  const queue = state.queues.get(name)
  const lease = request.lease ?? (queue?.settings ?? DEFAULTS).lease
  const claimed: Claimed = { now: ORIGIN + now, lease, jobs: [], retryAfter: null, limited: false }
  if (queue === undefined || queue.settings.paused) return claimed
  const { running, rate, groupRate } = queue.settings
  const isBounded = running !== null || rate !== null
  claimed.limited = running !== null || rate !== null || groupRate !== null
  const { waiting } = queue
  queue.beginClaim(now)
  let wait = queue.startableIn(now, 1)
  if (wait === 0 && waiting instanceof Groups) waiting.beginClaim(now)
  while (wait === 0 && claimed.jobs.length < limit) {
    const job = waiting.firstFrom(minPriority)
    if (job === null) break
    if (isBounded) {
      wait = queue.startableIn(now, job.cost)
      if (wait !== 0) break
    }
    queue.run(job, worker, now, now + lease, perGroup)
    claimed.jobs.push(new Claim(job))
  }
  if (claimed.jobs.length > 0) state.bells.ring('room', name)
  if (claimed.jobs.length < limit) {
    const held = wait !== 0 ? wait : waiting instanceof Groups ? waiting.heldFor(now) : null
    claimed.retryAfter = least(queue.nextDueIn(now), held)
  }
  return claimed
}

function least(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b)
}
