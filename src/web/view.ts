/** A job as those who follow it see it. */
import { createHash } from 'node:crypto'
import type { JobState } from '../store.ts'
import type { JobInfo, JobPart } from '../values/job.ts'
import { jsonText } from './answer.ts'
import { timeText } from './time.ts'

/**
 * What an answer tells of a job. Times are RFC 3339 in UTC, by the store's clock; what is not known or has not happened is left out.
 * The payload, the worker and the error's stack are not for clients.
 */
export interface JobView {
  id: string
  queue: string
  state: JobState
  /** 0–9, higher first. */
  priority: number
  /** How many attempts were started, and how many it may take in all. */
  attempt: number
  attempts: number
  pushedAt: string
  dueAt: string
  startedAt?: string
  finishedAt?: string
  /** About when it will start, while it waits and there are figures to tell it from. */
  expectedStart?: string
  progress?: unknown
  result?: unknown
  /** Why the last failed attempt failed. */
  error?: { name: string; message: string; code: string }
  /** What the store has of the job but cannot be decoded, and so is left out. Only where there is such. */
  undecodable?: readonly JobPart[]
}

export function jobView(job: JobInfo, expectedStart?: Date): JobView {
  const { id, queue, state, priority, attempt, attempts, startedAt, finishedAt, progress, result, error } = job
  const { undecodable } = job
  return {
    ...{ id, queue, state, priority, attempt, attempts },
    pushedAt: timeText(job.pushedAt),
    dueAt: timeText(job.dueAt),
    ...(startedAt === null ? {} : { startedAt: timeText(startedAt) }),
    ...(finishedAt === null ? {} : { finishedAt: timeText(finishedAt) }),
    ...(expectedStart === undefined ? {} : { expectedStart: timeText(expectedStart) }),
    ...(progress === undefined ? {} : { progress }),
    ...(result === undefined ? {} : { result }),
    ...(error === null ? {} : { error: { name: error.name, message: error.message, code: error.code } }),
    ...(undecodable.length === 0 ? {} : { undecodable }),
  }
}

/** Weak, since the expected start is left out of it: that changes with every look. */
export function entityTag(job: JobInfo): string {
  return `W/"${createHash('sha256')
    .update(jsonText(jobView(job)))
    .digest('base64url')
    .slice(0, 22)}"`
}

export const isFinal = ({ state }: JobInfo): boolean => state === 'done' || state === 'dead' || state === 'cancelled'
