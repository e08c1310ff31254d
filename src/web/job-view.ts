/** A job as clients see it. */

import type { JobInfo, JobPart } from '../values/jobs/job.ts'
import type { LogLine } from '../values/jobs/job-log.ts'
import { defined } from '../values/options/options.ts'
import { timeText } from '../values/time/duration.ts'

/**
 * A job in an answer. Times are RFC 3339 in UTC, by the store's clock. Members without a value are left out. The
 * payload, the worker and the error's stack are never included.
 */
export interface JobView extends Pick<JobInfo, 'id' | 'queue' | 'state' | 'priority' | 'attempt' | 'attempts'> {
  pushedAt: string
  dueAt: string
  startedAt?: string
  finishedAt?: string
  /** About when the job will start: while it waits, if the queue has enough measurements for an estimate. */
  expectedStart?: string
  /** While it is blocked: for how many jobs it waits. */
  waitsFor?: number
  progress?: unknown
  result?: unknown
  /** Why the last failed attempt failed. `code`: of `contract/errors.json`. */
  error?: { name: string; message: string; code: string }
  /** Parts of the job that the store has but that cannot be decoded. Left out if there are none. */
  undecodable?: readonly JobPart[]
  /** What its handlers have logged, oldest first. Left out if there is nothing. */
  log?: readonly LogView[]
}

/** A line of a log. `at` and `attempt` are left out where the line cannot be read. */
export interface LogView {
  at?: string
  attempt?: number
  message: string
  fields?: Record<string, unknown>
  cut?: true
}

export function jobView(job: JobInfo, expectedStart?: Date): JobView {
  const { id, queue, state, priority, attempt, attempts, pushedAt, dueAt, startedAt, finishedAt } = job
  const { progress, result, error, undecodable, log, waitsFor } = job
  return {
    ...{ id, queue, state, priority, attempt, attempts, pushedAt: timeText(pushedAt), dueAt: timeText(dueAt) },
    ...(startedAt && { startedAt: timeText(startedAt) }),
    ...(finishedAt && { finishedAt: timeText(finishedAt) }),
    ...(expectedStart && { expectedStart: timeText(expectedStart) }),
    ...defined({ waitsFor, progress, result }),
    ...(error && { error: { name: error.name, message: error.message, code: error.code } }),
    ...(undecodable.length > 0 && { undecodable }),
    ...(log.length > 0 && { log: log.map(logView) }),
  }
}

function logView({ at, attempt, message, fields, cut }: LogLine): LogView {
  return {
    ...(at && { at: timeText(at) }),
    ...(attempt !== null && { attempt }),
    message,
    ...(fields && { fields }),
    ...(cut && { cut }),
  }
}

export const isFinal = ({ state }: JobInfo): boolean => state === 'done' || state === 'dead' || state === 'cancelled'
