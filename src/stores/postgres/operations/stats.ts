/** Figures: stats and record. */
import type { HistogramSlice, QueueStats } from '../../../store.ts'
import type { Context } from '../context.ts'
import { statsFrom } from '../wire.ts'

interface Figures {
  stats(options: { queue?: string; minutes?: number }): Promise<QueueStats[]>
  record(slices: readonly HistogramSlice[]): Promise<void>
}

export function figures({ calls }: Context): Figures {
  /** Settles when all that was recorded here is written: calls on several connections overtake each other. */
  let recorded: Promise<unknown> = Promise.resolve()
  return {
    async stats({ queue = null, minutes = 0 }: { queue?: string | null; minutes?: number }) {
      await recorded
      return (await calls.answers('stats($1, $2, $3)', [queue, minutes, calls.now()])).map(statsFrom)
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
