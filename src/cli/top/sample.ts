/** What `top` shows: the queues of a store at a moment, and what happened since the moment before. */
import type { QueueReport } from '../../pond/stats.ts'
import type { WorkerInfo } from '../../pond/worker-info.ts'

export interface Sample {
  /** Milliseconds, of a clock that never steps. */
  at: number
  reports: readonly QueueReport[]
  /** null: the store does not know them. */
  workers: readonly WorkerInfo[] | null
}

/** A queue, as a line of `top`. Rates are per second; null: not known yet. */
export interface QueueLine {
  queue: string
  report: QueueReport
  arrivals: number | null
  completions: number | null
  failures: number | null
  /** Those that are not silent. */
  workers: number
  slots: number
  busy: number
}

export function linesOf(now: Sample, before: Sample | undefined): QueueLine[] {
  const known = new Map(before?.reports.map((report) => [report.queue, report]))
  const seconds = before === undefined ? 0 : (now.at - before.at) / 1000
  return now.reports.map((report) => {
    const earlier = known.get(report.queue)
    const rate = (total: 'pushed' | 'done' | 'failed'): number | null => {
      if (earlier === undefined || seconds <= 0) return null
      // A queue that was removed and made anew counts from 0.
      return Math.max(0, report.totals[total] - earlier.totals[total]) / seconds
    }
    const own = (now.workers ?? []).filter(({ queue, silent }) => queue === report.queue && !silent)
    return {
      queue: report.queue,
      report,
      ...{ arrivals: rate('pushed'), completions: rate('done'), failures: rate('failed') },
      workers: own.length,
      slots: own.reduce((sum, { slots }) => sum + slots, 0),
      busy: own.reduce((sum, { busy }) => sum + busy, 0),
    }
  })
}

export const SORTS = ['waiting', 'arrivals', 'completions', 'failures', 'dead', 'oldest', 'name'] as const
export type Sort = (typeof SORTS)[number]

export function sorted(lines: readonly QueueLine[], sort: Sort): QueueLine[] {
  const figure = ({ report, arrivals, completions, failures }: QueueLine): number => {
    switch (sort) {
      case 'arrivals':
        return arrivals ?? 0
      case 'completions':
        return completions ?? 0
      case 'failures':
        return failures ?? 0
      case 'oldest':
        return report.oldestWaiting ?? -1
      case 'name':
        return 0
      default:
        return report.counts[sort]
    }
  }
  return lines.toSorted((a, b) => figure(b) - figure(a) || (a.queue < b.queue ? -1 : 1))
}
