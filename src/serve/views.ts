/** What answers tell of jobs and queues, beyond what those who follow a job see. */

import type { QueueReport } from '../pond/stats.ts'
import type { ClaimedJob } from '../store.ts'
import { decode } from '../values/encoding.ts'
import type { JobInfo } from '../values/job.ts'
import { jsonText } from '../web/answer.ts'
import { timeText } from '../web/time.ts'
import { jobView } from '../web/view.ts'

/** @param now the store's time of the claim @throws PayloadNotDecodable */
export function claimView(queue: string, claimed: ClaimedJob, now: number, lease: number): Record<string, unknown> {
  const { id, fence, attempt, attempts, priority, key, group, timeout, trace } = claimed
  return {
    ...{ id, queue, fence, attempt, attempts, priority },
    data: decode(claimed.data, `data of job ${id}`),
    pushedAt: iso(claimed.pushedAt),
    dueAt: iso(claimed.dueAt),
    leaseUntil: iso(now + lease),
    ...present({ key, group, timeout, trace }),
  }
}

export function listView(job: JobInfo): Record<string, unknown> {
  const { data, key, group, worker, error } = job
  return { ...jobView(job), ...(data === undefined ? {} : { data }), ...present({ key, group, worker, error }) }
}

export function reportView(report: QueueReport): Record<string, unknown> {
  // What was not measured is undefined, for which MessagePack has nothing.
  return JSON.parse(jsonText(report))
}

function iso(ms: number): string {
  return timeText(new Date(ms))
}

function present(members: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null))
}
