import type { Input } from '../../../store.ts'
import type { JobOutcome, JobRecord } from '../../../values/jobs/records.ts'
import { firstOutcomes } from '../../../values/operations/outcomes.ts'
import { Groups } from '../groups.ts'
import type { MemoryState } from '../state.ts'

export function find(state: MemoryState, { ids }: Input<'find'>): (JobRecord | null)[] {
  return ids.map((id) => state.jobs.get(id)?.toRecord() ?? null)
}

export function outcomes(state: MemoryState, { ids }: Input<'outcomes'>): (JobOutcome | null)[] {
  return firstOutcomes(ids, (id) => state.jobs.get(id)?.toRecord() ?? null)
}

const MAX_AHEAD = 1000

export function ahead(state: MemoryState, { id }: Input<'ahead'>): number | null {
  const job = state.jobs.get(id)
  const waiting = job === undefined ? undefined : state.queues.get(job.queue)?.waiting
  if (job?.state !== 'waiting' || waiting === undefined) return null
  let count = 0
  for (const other of waiting instanceof Groups ? waiting.line(job) : waiting.after(null)) {
    if (other === job || count === MAX_AHEAD) break
    count++
  }
  return count
}
