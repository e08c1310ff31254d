import type { JobRecord, RestoreOutcome } from '../../../store.ts'
import type { StoreContext } from '../context.ts'
import { sendBack } from '../traffic.ts'
import { deadLetter, parcelOf } from '../wire.ts'

/** Done and cancelled jobs are not kept here. */
export async function restore(
  context: StoreContext,
  { records }: { records: readonly JobRecord[] },
): Promise<RestoreOutcome[]> {
  const now = context.now()
  const of = (queue: string) => context.queues.of(queue).values
  const live = records.filter(({ state }) => state === 'waiting' || state === 'scheduled')
  await sendBack(
    context,
    live.map((record) => parcelOf(record, of(record.queue), now)),
  )
  const dead = records.filter(({ state }) => state === 'dead')
  for (const { queue } of dead) await context.topology.dead(queue)
  await context.publisher.publish(
    dead.flatMap((record) => {
      const keep = (record.finishedAt ?? now) + of(record.queue).keepDead - now
      return keep > 0 ? [deadLetter(context.names, parcelOf(record, of(record.queue), now), record.error, keep)] : []
    }),
  )
  return records.map(() => 'restored')
}
