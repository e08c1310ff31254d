import type { Input } from '../../../store.ts'
import type { JobUpdate, UpdateOutcome } from '../../../values/operations/requests.ts'
import { SOON } from '../../bells.ts'
import { copyBody } from '../../jobs.ts'
import { ORIGIN } from '../job.ts'
import type { MemoryState } from '../state.ts'

export function update(state: MemoryState, { items }: Input<'update'>): UpdateOutcome[] {
  const now = state.now()
  return items.map((item) => updateOne(state, item, now))
}

export function updateOne(
  state: MemoryState,
  { id, data, priority, delay, runAt }: JobUpdate,
  now: number,
): UpdateOutcome {
  const job = state.jobs.get(id)
  if (job === undefined) return null
  if (job.state !== 'blocked' && job.state !== 'scheduled' && job.state !== 'waiting') return job.state
  if (data !== undefined) {
    job.encoding = data.encoding
    job.body = copyBody(data.body)
  }
  let isDue = runAt !== undefined || delay !== undefined
  if (isDue && job.followDue !== null) {
    job.followDue = Math.max(now, runAt === undefined ? now + (delay ?? 0) : runAt - ORIGIN)
    isDue = false
  }
  if (!isDue && priority === undefined) return 'updated'
  const dueAt = isDue ? Math.max(now, runAt === undefined ? now + (delay ?? 0) : runAt - ORIGIN) : job.dueAt
  if (job.state === 'blocked') {
    job.priority = priority ?? job.priority
    job.dueAt = dueAt
    return 'updated'
  }
  const becomes = isDue ? (dueAt > now ? 'scheduled' : 'waiting') : job.state
  const queue = state.findOrCreate(job.queue)
  queue.move(job, becomes, () => {
    job.priority = priority ?? job.priority
    job.dueAt = dueAt
  })
  if (becomes === 'waiting' || dueAt < now + SOON || queue.hasLimits) state.bells.ring('work', job.queue)
  return 'updated'
}
