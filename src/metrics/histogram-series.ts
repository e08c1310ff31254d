/**
 * A log-spaced histogram (`values/histogram.ts`) as the series of a Prometheus histogram. Its bounds are powers of two of a
 * microsecond. Each is a bound of the log-spaced buckets, too, so every count is exact. The sum is estimated from the
 * middles of the buckets, as percentiles are, and off by 4.5 % at most.
 */
import { middleOf, PER_DOUBLING } from '../values/figures/histogram.ts'
import type { Labels, Sample } from './exposition.ts'

/** 2⁸ µs is 0.26 ms, 2³⁶ µs are 19 hours. */
const FIRST = 8
const LAST = 36
/** What each `le` counts: the buckets up to this one. */
const BOUNDS = Array.from({ length: LAST - FIRST + 1 }, (_, index) => {
  const power = FIRST + index
  return { last: PER_DOUBLING * power, le: String(2 ** power / 1e6) }
})

/** @param buckets bucket index → how many */
export function histogramSeries(labels: Labels, buckets: Readonly<Record<number, number>>): Sample[] {
  // Keys that are whole numbers come in their order.
  const entries = Object.entries(buckets).map(([bucket, count]) => ({ bucket: Number(bucket), count }))
  const series: Sample[] = []
  let count = 0
  let at = 0
  for (const { last, le } of BOUNDS) {
    for (let entry = entries[at]; entry !== undefined && entry.bucket <= last; entry = entries[++at])
      count += entry.count
    series.push({ suffix: '_bucket', labels: { ...labels, le }, value: count })
  }
  const total = entries.reduce((sum, entry) => sum + entry.count, 0)
  const seconds = entries.reduce((sum, entry) => sum + entry.count * middleOf(entry.bucket), 0) / 1000
  series.push({ suffix: '_bucket', labels: { ...labels, le: '+Inf' }, value: total })
  series.push({ suffix: '_sum', labels, value: seconds }, { suffix: '_count', labels, value: total })
  return series
}
