/** The histograms of a queue: a set of slices for each minute of the last hour, and one for all older ones. */

import type { HistogramSlice } from '../../values/figures/histogram.ts'
import { merge } from '../../values/figures/histogram.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'

const MINUTES_KEPT = DEFAULTS.store.histogramMinutes
const minuteOf = (now: number): number => Math.floor(now / 60_000)

export class Histograms {
  /** Minute since 1970 → `priority metric` → slice. Minutes come in order, so the first is the oldest. */
  readonly #minutes = new Map<number, Map<string, HistogramSlice>>()
  readonly #older = new Map<string, HistogramSlice>()

  record(slice: HistogramSlice, now: number): void {
    const minute = minuteOf(now)
    const slices = this.#minutes.get(minute) ?? new Map<string, HistogramSlice>()
    this.#minutes.set(minute, slices)
    add(slices, slice)
  }

  /** The current minute and the `minutes` - 1 before it, merged; with more than are kept, all there ever were. */
  merged(minutes: number, now: number): HistogramSlice[] {
    const merged = new Map<string, HistogramSlice>()
    if (minutes > MINUTES_KEPT) for (const slice of this.#older.values()) add(merged, slice)
    for (const [minute, slices] of this.#minutes) {
      if (minute > minuteOf(now) - minutes) for (const slice of slices.values()) add(merged, slice)
    }
    return [...merged.values()]
  }

  expire(now: number): void {
    for (const [minute, slices] of this.#minutes) {
      if (minute >= minuteOf(now) - MINUTES_KEPT) return
      for (const slice of slices.values()) add(this.#older, slice)
      this.#minutes.delete(minute)
    }
  }
}

function add(slices: Map<string, HistogramSlice>, { queue, priority, metric, buckets }: HistogramSlice): void {
  const name = `${priority} ${metric}`
  const sum = slices.get(name) ?? { queue, priority, metric, buckets: {} }
  slices.set(name, sum)
  merge(sum.buckets, buckets)
}
