/** Estimates when a waiting job will start, from the stats of its queue, which are asked for at most every few seconds. */

import type { Millpond } from '../pond/millpond.ts'
import type { QueueReport } from '../pond/stats.ts'
import { TtlMap } from '../values/collections/ttl-map.ts'
import type { JobInfo } from '../values/jobs/job.ts'
import { LAST_MOMENT } from '../values/time/duration.ts'

/** Milliseconds that stats are reused, however many clients follow jobs of the queue. */
const STATS_TTL = 5000
/** Most queues whose stats are kept: if clients name the queues, there may be any number. */
const MAX_QUEUES = 1000

export class ExpectedStarts {
  readonly #pond: Pick<Millpond, 'queue'>
  readonly #stats = new TtlMap<Promise<QueueReport | undefined>>({ ttl: STATS_TTL, entries: MAX_QUEUES })

  constructor(pond: Pick<Millpond, 'queue'>) {
    this.#pond = pond
  }

  /** Undefined if the job does not wait, its queue is paused, nothing is known, or no Date is as late. Never rejects. */
  async of(job: JobInfo): Promise<Date | undefined> {
    if (job.state !== 'waiting' && job.state !== 'scheduled') return undefined
    const report = await this.#report(job.queue)
    const wait = report && expectedWait(report, job.priority)
    if (wait === undefined) return undefined
    const start = Math.max(Date.now(), job.dueAt.getTime() + wait)
    return start > LAST_MOMENT ? undefined : new Date(start)
  }

  #report(queue: string): Promise<QueueReport | undefined> {
    const known = this.#stats.get(queue)
    if (known !== undefined) return known
    const ask = async () => this.#pond.queue(queue).stats()
    // An answer without the expected start is better than none.
    const report = ask().catch(() => undefined)
    this.#stats.put(queue, report)
    return report
  }
}

/**
 * Milliseconds from due to started: the median of the last five minutes for the job's priority. If all jobs have one priority, or nothing
 * was measured for this one, it is at least the present wait of the oldest waiting job, because a backlog that grows shows there first.
 */
export function expectedWait(report: QueueReport, priority: number): number | undefined {
  if (report.paused) return undefined
  const own = report.priorities.find((slice) => slice.priority === priority)?.wait.p50
  if (own !== undefined && report.priorities.length > 1) return own
  const known = [own ?? report.wait.p50, report.oldestWaiting].filter((ms) => typeof ms === 'number')
  return known.length === 0 ? undefined : Math.max(...known)
}
