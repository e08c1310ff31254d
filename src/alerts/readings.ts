/** What the rules look at, per queue. */
import type { Millpond } from '../pond/millpond.ts'
import type { QueueReport } from '../pond/stats.ts'
import type { AlertMetric, CheckedRule } from './rules.ts'

/** Minutes that `waitP95` and `failures` look back. */
const MINUTES = 5
/** Queues that serve the alerts themselves. */
export const OWN_QUEUE = 'millpond/alerts'

/** Values by metric. Times are in milliseconds. */
export type Reading = { queue: string } & Readonly<Record<AlertMetric, number | undefined>>

export class Readings {
  readonly #pond: Pick<Millpond, 'stats' | 'workers'>
  readonly #withWorkers: boolean
  /** Per queue, oldest first: how many attempts had failed at that time. */
  #failed = new Map<string, { at: number; total: number }[]>()

  constructor(pond: Pick<Millpond, 'stats' | 'workers'>, rules: readonly CheckedRule[]) {
    this.#pond = pond
    this.#withWorkers = rules.some(({ metric }) => metric === 'noWorker')
  }

  /** @param now milliseconds since 1970 @throws Closed, `Store…` */
  async read(now: number): Promise<Reading[]> {
    const [all, workers] = await Promise.all([
      this.#pond.stats({ minutes: MINUTES }),
      this.#withWorkers ? this.#pond.workers() : [],
    ])
    const reports = all.filter(({ queue }) => queue !== OWN_QUEUE && !queue.startsWith(`${OWN_QUEUE}/`))
    const worked = new Set(workers.map(({ queue }) => queue))
    this.#failed = new Map(reports.map((report) => [report.queue, this.#noted(report, now)]))
    return reports.map(({ queue, wait, oldestWaiting, counts }) => ({
      queue,
      waitP95: wait.p95,
      oldest: oldestWaiting ?? undefined,
      depth: counts.waiting,
      failures: risen(this.#failed.get(queue) ?? []),
      dead: counts.dead,
      noWorker: Number(counts.waiting > 0 && !worked.has(queue)),
    }))
  }

  #noted({ queue, totals }: QueueReport, now: number): { at: number; total: number }[] {
    const from = now - MINUTES * 60_000
    const known = (this.#failed.get(queue) ?? []).filter(({ at }) => at >= from)
    return [...known, { at: now, total: totals.failed }]
  }
}

/** 0 where the queue was removed and came back meanwhile. */
function risen(noted: readonly { total: number }[]): number {
  return Math.max(0, (noted.at(-1)?.total ?? 0) - (noted[0]?.total ?? 0))
}
