/** When a waiting job will start, about: told from the figures of its queue, which are asked for every few seconds at the most. */
import { TtlMap } from '../coalesce/ttl-map.ts'
import type { Millpond } from '../pond/millpond.ts'
import type { QueueReport } from '../pond/stats.ts'
import { LAST_MOMENT } from '../values/duration.ts'
import type { JobInfo } from '../values/job.ts'

/** Milliseconds that figures serve, however many follow jobs of the queue. */
const FIGURES_TTL = 5000
/** Most queues whose figures are kept: where clients name queues, there may be any number. */
const MAX_QUEUES = 1000

export class Expected {
  readonly #pond: Pick<Millpond, 'queue'>
  readonly #figures = new TtlMap<Promise<QueueReport | undefined>>({ ttl: FIGURES_TTL, entries: MAX_QUEUES })

  constructor(pond: Pick<Millpond, 'queue'>) {
    this.#pond = pond
  }

  /** Undefined where the job does not wait, its queue is paused, nothing is known, or no Date goes that far. Never rejects. */
  async start(job: JobInfo): Promise<Date | undefined> {
    if (job.state !== 'waiting' && job.state !== 'scheduled') return undefined
    const report = await this.#report(job.queue)
    const wait = report === undefined ? undefined : expectedWait(report, job.priority)
    if (wait === undefined) return undefined
    const start = Math.max(Date.now(), job.dueAt.getTime() + wait)
    return start > LAST_MOMENT ? undefined : new Date(start)
  }

  #report(queue: string): Promise<QueueReport | undefined> {
    const known = this.#figures.get(queue)
    if (known !== undefined) return known
    // An answer without the expected start is better than none.
    const report = this.#ask(queue).catch(() => undefined)
    this.#figures.put(queue, report)
    return report
  }

  async #ask(queue: string): Promise<QueueReport> {
    return this.#pond.queue(queue).stats()
  }
}

/**
 * Milliseconds from due to started: the median of the last five minutes for the job's priority. Where all jobs have one priority, or
 * nothing was measured for this one, also what the oldest waiting job has waited by now: a backlog that grows shows there first.
 */
export function expectedWait(report: QueueReport, priority: number): number | undefined {
  if (report.paused) return undefined
  const own = report.priorities.find((slice) => slice.priority === priority)?.wait.p50
  if (own !== undefined && report.priorities.length > 1) return own
  const known = [own ?? report.wait.p50, report.oldestWaiting].filter((ms) => typeof ms === 'number')
  return known.length === 0 ? undefined : Math.max(...known)
}
