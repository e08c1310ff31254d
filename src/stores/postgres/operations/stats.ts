/** Figures: stats and record. */
import type { QueueStats, Store } from '../../../store.ts'
import type { Context } from '../context.ts'

export function figures({ calls }: Context): Pick<Store, 'stats' | 'record'> {
  /** Settles when all that was recorded here is written: calls on several connections overtake each other. */
  let recorded: Promise<unknown> = Promise.resolve()
  return {
    async stats({ queue, minutes = 0 }) {
      await recorded
      return calls.answers<QueueStats>('stats($1, $2, $3)', [queue ?? null, minutes, calls.now()])
    },
    async record(slices) {
      const sent = slices.flatMap(({ queue, priority, metric, buckets }) =>
        Object.entries(buckets).map(([bucket, count]) => ({ queue, priority, metric, bucket: Number(bucket), count })),
      )
      const written = calls.answer('record($1, $2)', [JSON.stringify(sent), calls.now()])
      recorded = Promise.allSettled([recorded, written])
      await written
    },
  }
}
