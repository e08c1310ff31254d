/** The last hour's histograms of a queue, a set of slices for each minute. */

import type { HistogramSlice } from '../../store.ts'

const MINUTE = 60_000
const MINUTES_KEPT = 60

export class Histograms {
  /** Minute since 1970 → `priority metric` → slice. Minutes come in order, so the first is the oldest. */
  readonly #minutes = new Map<number, Map<string, HistogramSlice>>()

  record(slice: HistogramSlice, now: number): void {
    const minute = Math.floor(now / MINUTE)
    let slices = this.#minutes.get(minute)
    if (slices === undefined) {
      slices = new Map()
      this.#minutes.set(minute, slices)
    }
    add(slices, slice)
  }

  /** The current minute and the `minutes` - 1 before it, merged. */
  merged(minutes: number, now: number): HistogramSlice[] {
    const oldest = Math.floor(now / MINUTE) - minutes
    const merged = new Map<string, HistogramSlice>()
    for (const [minute, slices] of this.#minutes) {
      if (minute <= oldest) continue
      for (const slice of slices.values()) add(merged, slice)
    }
    return [...merged.values()]
  }

  expire(now: number): void {
    const oldest = Math.floor(now / MINUTE) - MINUTES_KEPT
    for (const minute of this.#minutes.keys()) {
      if (minute >= oldest) return
      this.#minutes.delete(minute)
    }
  }
}

function add(slices: Map<string, HistogramSlice>, slice: HistogramSlice): void {
  const { queue, priority, metric, buckets } = slice
  const name = `${priority} ${metric}`
  const known = slices.get(name)
  if (known === undefined) {
    slices.set(name, { queue, priority, metric, buckets: { ...buckets } })
    return
  }
  for (const [bucket, count] of Object.entries(buckets)) {
    const index = Number(bucket)
    known.buckets[index] = (known.buckets[index] ?? 0) + count
  }
}
