import type { HistogramSlice, JobState, Metric, QueueStats } from '../store.ts'
import { merge, percentile } from '../values/histogram.ts'
import type { QueueLimits } from '../values/limits.ts'

/** Milliseconds; undefined if nothing was measured. Each is read from log-spaced buckets (see `values/histogram.ts`) and is off by at most 4.5 %. */
export interface Percentiles {
  /** How many measurements. */
  count: number
  p50: number | undefined
  p95: number | undefined
  p99: number | undefined
}

export interface QueueReport {
  queue: string
  /** Whether claims are stopped; see `queue.pause`. */
  paused: boolean
  /** Most scheduled and waiting jobs; null: no limit. */
  capacity: number | null
  /** How many jobs the store holds now, per state. */
  counts: Record<JobState, number>
  /** Milliseconds since the oldest waiting job became due; null: no job waits. */
  oldestWaiting: number | null
  /** Its limits and what they do now; null if it has none and groups do not take turns. */
  limits: QueueLimits | null
  /** From due to started, over all workers and the minutes asked for. */
  wait: Percentiles
  /** From started to finished, over the same. */
  run: Percentiles
  /** The same per priority, highest first; only priorities that were measured. */
  priorities: { priority: number; wait: Percentiles; run: Percentiles }[]
}

const NONE: Record<JobState, number> = { scheduled: 0, waiting: 0, running: 0, done: 0, dead: 0, cancelled: 0 }

/** @param stats undefined for a queue that the store has not seen */
export function queueReport(queue: string, stats: QueueStats | undefined): QueueReport {
  const slices = stats?.histograms ?? []
  const priorities = [...new Set(slices.map((slice) => slice.priority))].sort((a, b) => b - a)
  return {
    queue,
    paused: stats?.paused ?? false,
    capacity: stats?.capacity ?? null,
    counts: { ...(stats?.counts ?? NONE) },
    oldestWaiting: stats?.oldestWaiting ?? null,
    limits: stats?.limits ?? null,
    wait: percentiles(slices, 'wait'),
    run: percentiles(slices, 'run'),
    priorities: priorities.map((priority) => {
      const own = slices.filter((slice) => slice.priority === priority)
      return { priority, wait: percentiles(own, 'wait'), run: percentiles(own, 'run') }
    }),
  }
}

function percentiles(slices: readonly HistogramSlice[], metric: Metric): Percentiles {
  const buckets: Record<number, number> = {}
  for (const slice of slices) if (slice.metric === metric) merge(buckets, slice.buckets)
  return {
    count: Object.values(buckets).reduce((sum, count) => sum + count, 0),
    p50: percentile(buckets, 0.5),
    p95: percentile(buckets, 0.95),
    p99: percentile(buckets, 0.99),
  }
}
