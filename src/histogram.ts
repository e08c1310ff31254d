/**
 * Log-spaced histograms of waits and run times, sparse and mergeable by adding counts. The layout is part of the contract
 * (`contract/vectors/histogram.json`), because every language and store must agree on it, which is why no library holds it.
 *
 *   bucket(v) = 0 for v < 1 µs, else 1 + ⌊8 × log2(v)⌋          v in microseconds
 *
 * Eight buckets a doubling: bounds are 9 % apart, and the value told for a bucket, its geometric middle, is off by at most
 * 4.5 %. The mapping is DDSketch's logarithmic one (Masson, Rim, Lee, PVLDB 12, 2019) with γ = 2^(1/8).
 */
import type { HistogramSlice, Metric } from './store.ts'

const PER_DOUBLING = 8

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

/** Adds `from` to `into`. */
export function merge(into: Record<number, number>, from: Record<number, number>): void {
  for (const [bucket, count] of Object.entries(from)) {
    const index = Number(bucket)
    into[index] = (into[index] ?? 0) + count
  }
}

/** Since 1970 no Date is further away than 8.64e15 ms, which is in bucket 504; what is longer counts there, too. */
const BUCKETS = 505

interface Slice {
  wait: Uint32Array
  run: Uint32Array
  /** Nothing was added since it was taken. */
  empty: boolean
}

function sparse(counts: Uint32Array): Record<number, number> {
  const buckets: Record<number, number> = {}
  for (const [bucket, count] of counts.entries()) if (count > 0) buckets[bucket] = count
  return buckets
}

/** What one queue's worker has seen since it last told the store. */
export class Recorder {
  readonly #queue: string
  /** By priority. */
  readonly #slices: (Slice | undefined)[] = new Array(10)

  constructor(queue: string) {
    this.#queue = queue
  }

  add(priority: number, metric: Metric, ms: number): void {
    let slice = this.#slices[priority]
    if (slice === undefined) {
      slice = { wait: new Uint32Array(BUCKETS), run: new Uint32Array(BUCKETS), empty: true }
      this.#slices[priority] = slice
    }
    const buckets = metric === 'wait' ? slice.wait : slice.run
    const bucket = Math.min(bucketOf(ms), BUCKETS - 1)
    buckets[bucket] = (buckets[bucket] ?? 0) + 1
    slice.empty = false
  }

  /** Hands over everything and starts anew. */
  take(): HistogramSlice[] {
    const taken: HistogramSlice[] = []
    for (const [priority, slice] of this.#slices.entries()) {
      if (slice === undefined || slice.empty) continue
      for (const metric of ['wait', 'run'] as const) {
        const buckets = sparse(slice[metric])
        if (Object.keys(buckets).length > 0) taken.push({ queue: this.#queue, priority, metric, buckets })
        slice[metric].fill(0)
      }
      slice.empty = true
    }
    return taken
  }
}
