/** Figures: stats and record. */
import type { QueueStats, Store } from '../../../store.ts'
import type { Context } from '../notifier.ts'
import { textArray } from '../wire.ts'

export function figures({ calls }: Context): Pick<Store, 'stats' | 'record' | 'noteClaims'> {
  /** Settles when all that was recorded here is written: calls on several connections overtake each other. */
  let recorded: Promise<unknown> = Promise.resolve()
  return {
    stats: calls.operation(async ({ queue, minutes = 0 }) => {
      await recorded
      return calls.answers<QueueStats>('stats($1, $2, $3)', [queue ?? null, minutes, calls.now()])
    }),
    noteClaims: calls.operation((queues) => calls.answer('note_claims($1, $2)', [textArray(queues), calls.now()])),
    record: calls.operation(async (slices) => {
      const written = calls.done('record($1, $2)', [JSON.stringify(slices), calls.now()])
      recorded = Promise.allSettled([recorded, written])
      await written
    }),
  }
}
