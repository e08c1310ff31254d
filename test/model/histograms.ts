import type { HistogramSlice } from '../../src/values/figures/histogram.ts'
import { MINUTE } from './state.ts'

/** Every slice that was recorded, and when. */
export class ModelHistograms {
  #slices: (HistogramSlice & { minute: number })[] = []

  record(slices: readonly HistogramSlice[], now: number): void {
    for (const slice of slices) this.#slices.push({ ...slice, minute: Math.floor(now / MINUTE) })
  }

  remove(name: string): void {
    this.#slices = this.#slices.filter(({ queue }) => queue !== name)
  }

  merged(queue: string, minutes: number, now: number): HistogramSlice[] {
    const oldest = Math.floor(now / MINUTE) - minutes
    const merged: HistogramSlice[] = []
    for (const { minute, ...slice } of this.#slices) {
      if (slice.queue !== queue || minute <= oldest) continue
      let sum = merged.find(({ priority, metric }) => priority === slice.priority && metric === slice.metric)
      if (!sum) {
        sum = { ...slice, buckets: {} }
        merged.push(sum)
      }
      for (const [bucket, n] of Object.entries(slice.buckets)) {
        sum.buckets[Number(bucket)] = (sum.buckets[Number(bucket)] ?? 0) + n
      }
    }
    return merged
  }
}
