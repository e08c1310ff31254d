import type { HistogramSlice, Metric } from '../values/figures/histogram.ts'
import { merge, percentile } from '../values/figures/histogram.ts'
import type { QueueStats, Totals } from '../values/operations/requests.ts'
import type { HeldBack } from '../values/settings/limits.ts'
import { limitsOf, type QueueLimits } from './limits.ts'

/**
 * Milliseconds; undefined if nothing was measured. Each is read from log-spaced buckets (see `values/histogram.ts`) and
 * is off by at most 4.5 %.
 */
export interface Percentiles {
  /** How many measurements. */
  count: number
  p50: number | undefined
  p95: number | undefined
  p99: number | undefined
}

export interface StatsOptions {
  /** How far back the percentiles look; whole minutes, 1 to 60, 5 unless given. */
  minutes?: number | undefined
}

/** What the store tells of the queue now, and the percentiles of its waits and run times. */
export interface QueueReport extends Omit<QueueStats, 'histograms' | 'limits'> {
  /** In the shape of the option `limits`; null: it has none, and groups do not take turns. */
  limits: QueueLimits | null
  /** From due to started, over all workers and the minutes asked for. */
  wait: Percentiles
  /** From started to finished, over the same. */
  run: Percentiles
  /** The same per priority, highest first; only priorities that were measured. */
  priorities: { priority: number; wait: Percentiles; run: Percentiles }[]
}

const COUNTS = { blocked: 0, scheduled: 0, waiting: 0, running: 0, done: 0, dead: 0, cancelled: 0 }
const TOTALS: Totals = { pushed: 0, done: 0, failed: 0, dead: 0, cancelled: 0, lost: 0, released: 0 }
export const TOTAL_NAMES: readonly string[] = Object.keys(TOTALS)
const NOT_HELD: HeldBack = { nextStart: 0, groupsAtLimit: 0, groupsHeld: 0 }
const UNSEEN = {
  ...{
    paused: false,
    capacity: null,
    overrides: {},
    lastClaim: null,
    counts: COUNTS,
    totals: TOTALS,
    oldestWaiting: null,
    limits: null,
    histograms: [],
  },
  ...NOT_HELD,
}

/** What `queue.stats` and `pond.stats` return. @param stats undefined for a queue that the store has not seen */
export function queueReport(queue: string, stats: QueueStats = { queue, ...UNSEEN }): QueueReport {
  const { histograms: slices, limits, counts, ...told } = stats
  const priorities = [...new Set(slices.map((slice) => slice.priority))].sort((a, b) => b - a)
  const report = (own: readonly HistogramSlice[]) => ({ wait: percentiles(own, 'wait'), run: percentiles(own, 'run') })
  return {
    ...{
      ...told,
      counts: { ...counts },
      totals: { ...told.totals },
      limits: limits && limitsOf(limits),
      ...report(slices),
    },
    priorities: priorities.map((priority) => {
      return { priority, ...report(slices.filter((slice) => slice.priority === priority)) }
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
