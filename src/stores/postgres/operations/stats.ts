/** Figures: stats and record. */
import type { Input } from '../../../store.ts'
import type { QueueStats } from '../../../values/operations/requests.ts'
import type { StoreContext } from '../context.ts'

export async function stats(context: StoreContext, { queue, minutes = 0 }: Input<'stats'>): Promise<QueueStats[]> {
  const { calls } = context
  await context.recorded
  return calls.answers('stats($1, $2, $3)', [queue ?? null, minutes, calls.now()])
}

export async function record(context: StoreContext, { slices }: Input<'record'>): Promise<void> {
  const { calls } = context
  const written = calls.done('record($1, $2)', [JSON.stringify(slices), calls.now()])
  context.recorded = Promise.allSettled([context.recorded, written])
  await written
}
