import type { Input } from '../../../store.ts'
import type { JobOutcome, JobRecord, JobState } from '../../../values/jobs/records.ts'
import type { StoreContext } from '../context.ts'
import { orNull, plainArray, recordFrom, storedOutcomeFrom, type TaggedOutcome, type TaggedRecord } from '../wire.ts'

/** Records may be large. */
const MAX_IDS_PER_CALL = 500
const FINAL: ReadonlySet<JobState> = new Set(['done', 'dead', 'cancelled'])

export async function find({ calls }: StoreContext, { ids }: Input<'find'>): Promise<(JobRecord | null)[]> {
  const records = new Map<string, TaggedRecord>()
  for (let from = 0; from < ids.length; from += MAX_IDS_PER_CALL) {
    const some = plainArray([...new Set(ids.slice(from, from + MAX_IDS_PER_CALL))])
    for (const record of await calls.answers<TaggedRecord>('find($1)', [some])) records.set(record.id, record)
  }
  // Each a copy of its own, also where an id was given twice.
  return ids.map((id) => orNull(records.get(id), recordFrom))
}

export async function outcomes(
  { calls, notifier }: StoreContext,
  { ids }: Input<'outcomes'>,
): Promise<(JobOutcome | null)[]> {
  if (ids.length === 0) return []
  notifier.stir()
  const some = plainArray(ids.slice(0, MAX_IDS_PER_CALL))
  const found = await calls.answers<TaggedOutcome | null>('outcomes($1, $2)', [some, notifier.listener])
  return found.map((outcome) => {
    if (outcome !== null && !FINAL.has(outcome.state)) notifier.noted('finished', outcome.queue)
    return orNull(outcome, storedOutcomeFrom)
  })
}

export async function ahead({ calls }: StoreContext, { id }: Input<'ahead'>): Promise<number | null> {
  return calls.answer('ahead($1)', [id])
}
