import type { Input } from '../../../store.ts'
import type { HistogramSlice } from '../../../values/figures/histogram.ts'
import { JOB_STATES } from '../../../values/jobs/records.ts'
import type { QueueStats, Totals } from '../../../values/operations/requests.ts'
import { text } from '../connection/values.ts'
import type { StoreContext } from '../queues.ts'

const COUNTS = Object.fromEntries(JOB_STATES.map((state) => [state, 0]))
const TOTALS: Totals = { pushed: 0, done: 0, failed: 0, dead: 0, cancelled: 0, lost: 0, released: 0 }

export function stats({ statements, now }: StoreContext, request: Input<'stats'>): QueueStats[] {
  const { queue = null, minutes = 0 } = request
  const rows = minutes > 0 ? statements.all('stats/histograms', { queue, minutes, now }) : []
  const slices = rows.map((row): HistogramSlice => JSON.parse(text(row.slice)))
  return statements.all('stats/queues', { queue, now }).map((row): QueueStats => {
    const of: Omit<QueueStats, 'histograms'> = JSON.parse(text(row.stats))
    const counts = { ...COUNTS, ...of.counts }
    const histograms = slices.filter((slice) => slice.queue === of.queue)
    return { ...of, counts, totals: { ...TOTALS, ...of.totals }, histograms }
  })
}

export function record({ statements, now }: StoreContext, { slices }: Input<'record'>): void {
  for (const { queue, priority, metric, buckets } of slices) {
    for (const [bucket, count] of Object.entries(buckets)) {
      statements.run('record/record', { now, queue, priority, metric, bucket: Number(bucket), count })
    }
  }
}
