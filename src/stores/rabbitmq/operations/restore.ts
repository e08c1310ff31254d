import type { JobRecord } from '../../../values/jobs/records.ts'
import type { RestoreOutcome } from '../../../values/operations/requests.ts'
import type { StoreContext } from '../context.ts'
import { refused, tooLarge } from '../errors.ts'
import { sendBack } from '../traffic.ts'
import { deadOf, parcelOf } from '../wire.ts'

/** Done and cancelled jobs are not kept here. */
export async function restore(
  context: StoreContext,
  { records }: { records: readonly JobRecord[] },
): Promise<RestoreOutcome[]> {
  const now = context.now()
  const parcels = records.flatMap((record) => {
    const { values } = context.queues.of(record.queue)
    const parcel = parcelOf(record, values, now)
    if (record.state === 'waiting' || record.state === 'scheduled') return parcel
    return record.state === 'dead'
      ? deadOf(parcel, record.error, (record.finishedAt ?? now) + values.keepDead - now)
      : []
  })
  const { where } = context.settings
  const answers = await sendBack(context, parcels)
  if (answers.includes('oversized')) throw tooLarge(where)
  if (answers.some((answer) => answer !== 'stored')) throw refused(where)
  return records.map(() => 'restored')
}
