/** From the JSON of find, list, stats and sweep to what the interface says, checked on the way. */

import { kindOf } from '../../duration.ts'
import {
  type Encoded,
  type HistogramSlice,
  JOB_STATES,
  type JobRecord,
  type JobState,
  type QueueStats,
  type Swept,
} from '../../store.ts'
import { keptError } from '../kept-error.ts'
import { isRow, type Row } from './database.ts'
import { untagged } from './wire.ts'

function unexpected(value: unknown, wanted: string): never {
  throw new TypeError(`millpond: PostgreSQL answered ${kindOf(value)} where ${wanted} was expected`)
}

export const text = (value: unknown): string => (typeof value === 'string' ? value : unexpected(value, 'text'))
/** Whole numbers of 8 bytes come as text outside of JSON. */
export const integer = (value: unknown): number => {
  if (typeof value === 'number') return value
  return typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : unexpected(value, 'a whole number')
}
export const row = (value: unknown): Row => (isRow(value) ? value : unexpected(value, 'an object'))
export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : unexpected(value, 'a list'))
const orNull = <T>(value: unknown, read: (value: unknown) => T): T | null =>
  value === null || value === undefined ? null : read(value)

export const texts = (value: unknown): string[] => list(value).map(text)
export const integersOrNull = (value: unknown): number[] | null => orNull(value, (given) => list(given).map(integer))
export const textsOrNull = (value: unknown): string[] | null => orNull(value, texts)

const encoded = (value: unknown): Encoded => untagged(text(value))

function state(value: unknown): JobState {
  return JOB_STATES.find((known) => known === value) ?? unexpected(value, 'a state')
}

export function recordFrom(value: unknown): JobRecord {
  const job = row(value)
  return {
    id: text(job.id),
    queue: text(job.queue),
    state: state(job.state),
    priority: integer(job.priority),
    attempt: integer(job.attempt),
    attempts: integer(job.attempts),
    key: orNull(job.key, text),
    group: orNull(job.group, text),
    timeout: orNull(job.timeout, integer),
    trace: orNull(job.trace, text),
    pushedAt: integer(job.pushedAt),
    dueAt: integer(job.dueAt),
    startedAt: orNull(job.startedAt, integer),
    finishedAt: orNull(job.finishedAt, integer),
    worker: orNull(job.worker, text),
    data: encoded(job.data),
    progress: orNull(job.progress, encoded),
    result: orNull(job.result, encoded),
    error: orNull(job.error, keptError),
  }
}

function sliceFrom(queue: string, value: unknown): HistogramSlice {
  const slice = row(value)
  const metric = slice.metric === 'run' ? 'run' : 'wait'
  const buckets: Record<number, number> = {}
  for (const [bucket, count] of Object.entries(row(slice.buckets))) buckets[Number(bucket)] = integer(count)
  return { queue, priority: integer(slice.priority), metric, buckets }
}

export function statsFrom(value: unknown): QueueStats {
  const stats = row(value)
  const queue = text(stats.queue)
  const counts = row(stats.counts)
  return {
    queue,
    paused: stats.paused === true,
    capacity: orNull(stats.capacity, integer),
    counts: {
      scheduled: integer(counts.scheduled),
      waiting: integer(counts.waiting),
      running: integer(counts.running),
      done: integer(counts.done),
      dead: integer(counts.dead),
      cancelled: integer(counts.cancelled),
    },
    oldestWaiting: orNull(stats.oldestWaiting, integer),
    histograms: list(stats.histograms).map((slice) => sliceFrom(queue, slice)),
  }
}

export interface SweepAnswer extends Swept {
  now: number
  /** Queues in which jobs became waiting. */
  work: string[]
}

export function sweptFrom(value: unknown): SweepAnswer {
  const swept = row(value)
  return {
    now: integer(swept.now),
    work: texts(swept.work),
    lost: list(swept.lost).map((one) => {
      const { id, queue, attempt, state } = row(one)
      return {
        id: text(id),
        queue: text(queue),
        attempt: integer(attempt),
        state: state === 'dead' ? 'dead' : 'waiting',
      }
    }),
    promoted: integer(swept.promoted),
    expired: integer(swept.expired),
    more: swept.more === true,
    nextDue: orNull(swept.nextDue, integer),
    queues: integer(swept.queues),
  }
}
