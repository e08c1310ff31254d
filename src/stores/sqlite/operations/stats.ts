import type { HistogramSlice, QueueStats } from '../../../store.ts'
import { text } from '../connection/values.ts'
import type { Context } from '../queues.ts'

export function stats({ statements, now }: Context, request: { queue?: string; minutes?: number }): QueueStats[] {
  const { queue = null, minutes = 0 } = request
  const rows = minutes > 0 ? statements.all('stats/histograms', { queue, minutes, now }) : []
  const slices = rows.map((row): HistogramSlice => JSON.parse(text(row.slice)))
  return statements.all('stats/queues', { queue, now }).map((row): QueueStats => {
    const of: Omit<QueueStats, 'histograms'> = JSON.parse(text(row.stats))
    return { ...of, histograms: slices.filter((slice) => slice.queue === of.queue) }
  })
}

export function record({ statements, now }: Context, slices: readonly HistogramSlice[]): void {
  for (const { queue, priority, metric, buckets } of slices) {
    for (const [bucket, count] of Object.entries(buckets)) {
      statements.run('record/record', { now, queue, priority, metric, bucket: Number(bucket), count })
    }
  }
}

export function noteClaims({ statements, queues, now }: Context, names: readonly string[]): boolean[] {
  // What this transaction has pushed before is known to the statement only then.
  queues.write()
  return names.map((queue) => statements.run('record/claimed', { queue, now }) === 1)
}
