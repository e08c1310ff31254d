import type { HistogramSlice, Metric, QueueStats } from '../../../store.ts'
import { integer, integerOrNull, stateFrom, text } from '../connection/values.ts'
import type { Context } from './context.ts'

const MINUTE = 60_000

export function stats(context: Context, request: { queue?: string; minutes?: number }): QueueStats[] {
  const { statements, now } = context
  const { queue = null, minutes = 0 } = request
  const slices = minutes > 0 ? histograms(context, queue, Math.floor(now / MINUTE) - minutes + 1) : []
  const all = statements
    .get('stats/queues')
    .all({ queue })
    .map((row): QueueStats => {
      const name = text(row.name)
      return {
        queue: name,
        paused: integer(row.paused) !== 0,
        capacity: integerOrNull(row.capacity),
        counts: { scheduled: 0, waiting: 0, running: 0, done: 0, dead: 0, cancelled: 0 },
        oldestWaiting: null,
        histograms: slices.filter((slice) => slice.queue === name),
      }
    })
  const byName = new Map(all.map((one) => [one.queue, one]))
  for (const row of statements.get('stats/counts').all({ queue })) {
    const one = byName.get(text(row.queue))
    if (one !== undefined) one.counts[stateFrom(row.state)] = integer(row.count)
  }
  for (const one of all) {
    if (one.counts.waiting === 0) continue
    // Another process may have claimed the last one since the counts were read.
    const due = integerOrNull(statements.get('stats/oldest').get({ queue: one.queue })?.due_at)
    if (due !== null) one.oldestWaiting = now - due
  }
  return all
}

function metricFrom(value: unknown): Metric {
  if (value === 'wait' || value === 'run') return value
  throw new TypeError(`millpond: ${String(value)} is no metric`)
}

function histograms({ statements }: Context, only: string | null, minute: number): HistogramSlice[] {
  const slices: HistogramSlice[] = []
  let slice: HistogramSlice | undefined
  for (const row of statements.get('stats/histograms').all({ queue: only, minute })) {
    const queue = text(row.queue)
    const priority = integer(row.priority)
    const metric = metricFrom(row.metric)
    if (slice?.queue !== queue || slice.priority !== priority || slice.metric !== metric) {
      slice = { queue, priority, metric, buckets: {} }
      slices.push(slice)
    }
    slice.buckets[integer(row.bucket)] = integer(row.count)
  }
  return slices
}

export function record({ statements, now }: Context, slices: readonly HistogramSlice[]): void {
  const minute = Math.floor(now / MINUTE)
  for (const { queue, priority, metric, buckets } of slices) {
    for (const [bucket, count] of Object.entries(buckets)) {
      statements.get('record/record').run({ minute, queue, priority, metric, bucket: Number(bucket), count })
    }
  }
}
