import { Batcher } from '../../batch/batcher.ts'
import type { JobRecord } from '../../values/jobs/records.ts'
import type { Calls } from './connection/calls.ts'
import type { Notifier } from './notifier.ts'
import { orNull, plainArray, recordFrom, type TaggedRecord } from './wire.ts'

/** Records may be large. */
const MAX_IDS_PER_CALL = 500

export type LookUps = Batcher<readonly string[], (JobRecord | null)[]>

/** Look-ups that are asked for in one tick, or while one is under way, go in one call: a pond that waits for many jobs asks for each. */
export function lookUpsOf(calls: Calls, notifier: Notifier): LookUps {
  return new Batcher(
    async (lookUps) => {
      const wanted = plainArray([...new Set(lookUps.flat())])
      const found = await calls.answers<TaggedRecord>('find($1, $2)', [wanted, notifier.listener])
      for (const { finishedAt, queue } of found) if (finishedAt === null) notifier.noted('finished', queue)
      const records = new Map(found.map((record) => [record.id, record]))
      // Each a copy of its own, also where two asked for the same job.
      return lookUps.map((ids) => ids.map((id) => orNull(records.get(id), recordFrom)))
    },
    { items: Number.POSITIVE_INFINITY, bytes: MAX_IDS_PER_CALL },
  )
}
