import type { HistogramSlice, Metric, QueueStats } from '../../../store.ts'
import { flag, integer, integerOrNull, type Row, text } from '../connection/values.ts'
import type { Context } from '../queues.ts'

const MINUTE = 60_000

export function stats(context: Context, request: { queue?: string; minutes?: number }): QueueStats[] {
  const { statements, now } = context
  const { queue = null, minutes = 0 } = request
  const minute = Math.floor(now / MINUTE) - minutes + 1
  const slices = minutes > 0 ? statements.all('stats/histograms', { queue, minute }).map(sliceFrom) : []
  const until = (time: unknown) => (time === null ? null : Math.max(0, integer(time) - now))
  return statements.all('stats/queues', { queue }).map((row): QueueStats => {
    const name = text(row.name)
    const oldest = integerOrNull(row.oldest)
    const groups = flag(row.grouped) ? statements.get('stats/blocked', { queue: name, now }) : undefined
    return {
      queue: name,
      paused: flag(row.paused),
      capacity: integerOrNull(row.capacity),
      counts: JSON.parse(text(row.counts)),
      oldestWaiting: oldest === null ? null : now - oldest,
      limits: row.limits === null ? null : JSON.parse(text(row.limits)),
      nextStart: until(row.start_at),
      groupsAtLimit: integer(groups?.at_limit ?? 0),
      groupsHeld: integer(groups?.held ?? 0),
      histograms: slices.filter((slice) => slice.queue === name),
    }
  })
}

const sliceFrom = (row: Row): HistogramSlice => ({
  queue: text(row.queue),
  priority: integer(row.priority),
  metric: metricFrom(row.metric),
  buckets: JSON.parse(text(row.buckets)),
})

function metricFrom(value: unknown): Metric {
  if (value === 'wait' || value === 'run') return value
  throw new TypeError(`millpond: ${String(value)} is no metric`)
}

export function record({ statements, now }: Context, slices: readonly HistogramSlice[]): void {
  const minute = Math.floor(now / MINUTE)
  for (const { queue, priority, metric, buckets } of slices) {
    for (const [bucket, count] of Object.entries(buckets)) {
      statements.run('record/record', { minute, queue, priority, metric, bucket: Number(bucket), count })
    }
  }
}
