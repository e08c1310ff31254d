import type { HistogramSlice } from '../../src/store.ts'

export type Minute = HistogramSlice & { minute: number }

/** The queue's slices of the minutes after `oldest`, one per priority and metric. */
export function merged(slices: readonly Minute[], queue: string, oldest: number): HistogramSlice[] {
  const sums: HistogramSlice[] = []
  for (const { minute, ...slice } of slices) {
    if (slice.queue !== queue || minute <= oldest) continue
    let sum = sums.find(({ priority, metric }) => priority === slice.priority && metric === slice.metric)
    if (!sum) {
      sum = { ...slice, buckets: {} }
      sums.push(sum)
    }
    for (const [bucket, n] of Object.entries(slice.buckets)) {
      sum.buckets[Number(bucket)] = (sum.buckets[Number(bucket)] ?? 0) + n
    }
  }
  return sums
}
