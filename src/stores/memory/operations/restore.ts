import type { Input } from '../../../store.ts'
import type { JobRecord } from '../../../values/jobs/records.ts'
import type { RestoreOutcome } from '../../../values/operations/requests.ts'
import { isFinal, Job, ORIGIN } from '../job.ts'
import { NEVER_DUE } from '../once.ts'
import type { MemoryState } from '../state.ts'

export function restore(state: MemoryState, { records }: Input<'restore'>): RestoreOutcome[] {
  return records.map((record) => restoreOne(state, record))
}

function restoreOne(state: MemoryState, record: JobRecord): RestoreOutcome {
  const queue = state.findOrCreate(record.queue)
  const isLive = !isFinal(record.state)
  const hasKey = isLive && record.key !== null && queue.keys.has(record.key)
  const follows =
    hasKey &&
    record.state === 'scheduled' &&
    record.follows === true &&
    queue.once.follower(record.key ?? '') === undefined
  if ((hasKey && !follows) || state.jobs.get(record.id) !== undefined) return 'existing'
  const job = new Job({ ...record, delay: 0, runAt: null }, record, state.places++, record.pushedAt - ORIGIN, 0)
  job.restore(record)
  if (follows) {
    job.followDue = job.dueAt
    job.dueAt = NEVER_DUE
  }
  // The record may be older than the job of its id that was removed, and no fence is given out twice.
  job.fence = Math.max(job.fence, state.removedFence)
  const failed = record.state === 'blocked' ? wait(state, job, record) : undefined
  state.jobs.add(job)
  queue.restore(job, state.now())
  state.graph.stored(queue, job, failed)
  if (job.state === 'waiting') state.bells.ring('work', queue.name)
  return 'restored'
}

/** @returns why it is to be cancelled */
function wait(
  state: MemoryState,
  job: Job,
  { after = [], onDead }: JobRecord,
): ReturnType<MemoryState['graph']['wait']> {
  const failed = state.graph.wait(job, { after, onDead })
  if (failed !== undefined || job.links?.open.size !== 0) return failed
  const now = state.now()
  job.dueAt = Math.max(now, job.dueAt)
  job.state = job.dueAt > now ? 'scheduled' : 'waiting'
  return undefined
}
