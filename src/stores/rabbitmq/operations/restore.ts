import type { JobRecord, RestoreOutcome } from '../../../store.ts'
import { lacking } from '../capabilities.ts'
import { bury, send, type StoreContext, valuesOf } from '../context.ts'
import { HEADER } from '../names.ts'
import { deadLetter, parcelOf } from '../wire.ts'

/** Done and cancelled jobs are not kept here. */
export async function restore(
  context: StoreContext,
  { records }: { records: readonly JobRecord[] },
): Promise<RestoreOutcome[]> {
  if (records.some(({ key }) => key !== null)) throw lacking('keys', 'a key')
  const now = context.now()
  const parcelFor = (record: JobRecord) => parcelOf(record, valuesOf(context, record.queue), now)
  await send(context, records.filter(({ state }) => state === 'waiting' || state === 'scheduled').map(parcelFor))
  const dead = Map.groupBy(records.filter(({ state }) => state === 'dead'), ({ queue }) => queue)
  for (const [queue, own] of dead) {
    const letters = own.flatMap((record) => {
      const keep = (record.finishedAt ?? now) + valuesOf(context, queue).keepDead - now
      const parcel = parcelFor(record)
      parcel.headers[HEADER.attempt] = record.attempt
      const error = record.error ?? { code: 'HandlerFailed', name: 'Error', message: 'its error was not kept' }
      return keep > 0 ? [deadLetter(context.names, parcel, error, keep)] : []
    })
    await bury(context, queue, letters)
  }
  return records.map(({ id }) => ({ status: 'restored', id }))
}
