/**
 * Log-spaced histograms of waits and run times, sparse and mergeable by adding counts. The layout is part of the contract
 * (`contract/vectors/histogram.json`), because every language and store must agree on it, which is why no library holds it.
 *
 *   bucket(v) = 0 for v < 1 µs, else 1 + ⌊8 × log2(v)⌋          v in microseconds
 *
 * Eight buckets a doubling: bounds are 9 % apart, and the value told for a bucket, its geometric middle, is off by at most
 * 4.5 %. The mapping is DDSketch's logarithmic one (Masson, Rim, Lee, PVLDB 12, 2019) with γ = 2^(1/8).
 */

/** `wait`: from due to started. `run`: from started to finished. */
export type Metric = 'wait' | 'run'
/** Counts of measurements, per bucket of `histogram.ts`. */
export interface HistogramSlice {
  queue: string
  priority: number
  metric: Metric
  /** Bucket index → how many. */
  buckets: Record<number, number>
}

/** As `minutes` of `stats`: since the queue came to be. */
export const ALL_MINUTES = 2 ** 31 - 1

export const PER_DOUBLING = 8

/** @param ms a duration in milliseconds; below zero counts as zero */
export function bucketOf(ms: number): number {
  const microseconds = Math.round(ms * 1000)
  return microseconds < 1 ? 0 : 1 + Math.floor(PER_DOUBLING * Math.log2(microseconds))
}

/** The value in milliseconds that stands for a bucket: the geometric middle of its bounds. */
export function middleOf(bucket: number): number {
  return bucket === 0 ? 0 : 2 ** ((bucket - 0.5) / PER_DOUBLING) / 1000
}

/** The value in milliseconds that the given share (0–1) of the counts does not exceed; undefined of nothing. */
export function percentile(buckets: Record<number, number>, share: number): number | undefined {
  const sorted = Object.entries(buckets)
    .map(([bucket, count]) => ({ bucket: Number(bucket), count }))
    .sort((a, b) => a.bucket - b.bucket)
  const total = sorted.reduce((sum, { count }) => sum + count, 0)
  let left = Math.max(1, Math.ceil(share * total))
  for (const { bucket, count } of sorted) {
    left -= count
    if (left <= 0) return middleOf(bucket)
  }
  return undefined
}

export function merge(into: Record<number, number>, from: Record<number, number>): void {
  for (const [bucket, count] of Object.entries(from)) {
    const index = Number(bucket)
    into[index] = (into[index] ?? 0) + count
  }
}

/** Since 1970 no Date is further away than 8.64e15 ms, which is in this bucket; what is longer counts there, too. */
const LAST_BUCKET = 504
const PRIORITIES = 10

/** What one queue's worker has measured since it last told the store. */
export class HistogramRecorder {
  readonly #queue: string
  /** Waits by priority, then run times by priority. */
  #slices: (HistogramSlice | undefined)[] = []

  constructor(queue: string) {
    this.#queue = queue
  }

  add(priority: number, metric: Metric, ms: number): void {
    const at = metric === 'wait' ? priority : PRIORITIES + priority
    this.#slices[at] ??= { queue: this.#queue, priority, metric, buckets: {} }
    const { buckets } = this.#slices[at]
    const bucket = Math.min(bucketOf(ms), LAST_BUCKET)
    buckets[bucket] = (buckets[bucket] ?? 0) + 1
  }

  /** Hands over everything and starts anew. */
  take(): HistogramSlice[] {
    const taken = this.#slices.filter((slice) => slice !== undefined)
    this.#slices = []
    return taken
  }
}
