import type { JobRecord } from '../../../values/jobs/records.ts'
import type { RestoreOutcome } from '../../../values/operations/requests.ts'
import type { Published } from '../connection/publisher.ts'
import type { StoreContext } from '../context.ts'
import { sendBack } from '../traffic.ts'
import { deadOf, type Parcel, parcelOf } from '../wire.ts'

const OUTCOMES: Record<Published, RestoreOutcome> = {
  ...{ stored: 'restored', oversized: 'oversized', unwritable: 'oversized', refused: 'full', unrouted: 'full' },
}

/** Done and cancelled jobs are not kept here. */
export async function restore(
  context: StoreContext,
  { records }: { records: readonly JobRecord[] },
): Promise<RestoreOutcome[]> {
  const now = context.now()
  const parcels = records.map((record): Parcel | undefined => {
    const { values } = context.queues.of(record.queue)
    const parcel = parcelOf(record, values, now)
    if (record.state === 'waiting' || record.state === 'scheduled') return parcel
    if (record.state !== 'dead') return undefined
    return deadOf(parcel, record.error, (record.finishedAt ?? now) + values.keepDead - now)[0]
  })
  const sent = parcels.filter((parcel) => parcel !== undefined)
  const answers = (await sendBack(context, sent)).values()
  return parcels.map((parcel) => OUTCOMES[parcel === undefined ? 'stored' : (answers.next().value ?? 'refused')])
}
