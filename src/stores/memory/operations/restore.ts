import type { Input, JobRecord, RestoreOutcome } from '../../../store.ts'
import { isFinal, Job, ORIGIN } from '../job.ts'
import type { MemoryState } from '../state.ts'

export function restore(state: MemoryState, { records }: Input<'restore'>): RestoreOutcome[] {
  return records.map((record) => restoreOne(state, record))
}

function restoreOne(state: MemoryState, record: JobRecord): RestoreOutcome {
  const queue = state.findOrCreate(record.queue)
  const isLive = !isFinal(record.state)
  const hasKey = isLive && record.key !== null && queue.keys.has(record.key)
  if (hasKey || state.jobs.get(record.id) !== undefined) return 'existing'
  const job = new Job({ ...record, delay: 0, runAt: null }, record, state.places++, record.pushedAt - ORIGIN, 0)
  job.restore(record)
  // The record may be older than the job of its id that was removed, and no fence is given out twice.
  job.fence = Math.max(job.fence, state.removedFence)
  state.jobs.add(job)
  queue.restore(job)
  if (record.state === 'waiting') state.bells.ring('work', queue.name)
  return 'restored'
}
