/**
 * Batches as they travel: few long texts instead of many values, because parsing rows is most of what a client does. Data in them is
 * quoted, as an array's or JSON's elements: nothing that a producer stores can break an answer. Answers are checked on the way.
 */

import {
  type ClaimedJob,
  type Completion,
  type Encoded,
  type HistogramSlice,
  type Hold,
  type HoldOutcome,
  JOB_STATES,
  type JobRecord,
  type NewJob,
  type PushOutcome,
  type QueueStats,
  type Swept,
} from '../../store.ts'
import { kindOf } from '../../values/duration.ts'
import type { GroupRecord, LimitSettings, Rate } from '../../values/limits.ts'
import { jobErrorFromJson } from '../job-error.ts'
import { isRow, type Row } from './connection/database.ts'

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
export const texts = (value: unknown): string[] => list(value).map(text)
export const orNull = <T>(value: unknown, read: (value: unknown) => T): T | null =>
  value === null || value === undefined ? null : read(value)

/** A tag for the encoding, then JSON, or bytes in base64. */
export function tagged({ encoding, body }: Encoded): string {
  if (encoding === 'json') return `j${typeof body === 'string' ? body : Buffer.from(body).toString()}`
  const bytes =
    typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return `${encoding === 'bytes' ? 'b' : 'm'}${bytes.toString('base64')}`
}

function untagged(value: unknown): Encoded {
  const given = text(value)
  if (given.startsWith('j')) return { encoding: 'json', body: given.slice(1) }
  // A buffer of its own, since small ones share a pool that the caller must not see.
  const body = new Uint8Array(Buffer.from(given.slice(1), 'base64'))
  return { encoding: given.startsWith('b') ? 'bytes' : 'msgpack', body }
}

/** An array's text; for elements without quotes, backslashes and commas. */
export const plainArray = (values: readonly (string | number)[]): string => `{${values.join(',')}}`

/** An array's text, whatever the elements hold. */
export const textArray = (values: readonly (string | null)[]): string =>
  `{${values.map((value) => (value === null ? 'null' : `"${value.replaceAll(/["\\]/g, '\\$&')}"`)).join(',')}}`

const OUTCOMES: readonly PushOutcome['status'][] = ['pushed', 'existing', 'full']

/** For `push_jobs`. */
export function jobsText(jobs: readonly NewJob[]): string {
  return JSON.stringify(jobs.map((job) => ({ ...job, data: tagged(job.data) })))
}

/** From texts such as `pushed 019b…`. */
export function outcomeFrom(answer: string): PushOutcome {
  const [word, id = ''] = answer.split(' ')
  const status = OUTCOMES.find((known) => known === word) ?? unexpected(answer, 'an outcome of push')
  return { status, id }
}

const NOTHING_RARE = [null, null, null, null, 'json']

/** A job of `claim`: a list, in the order that `claim.sql` gives. */
export function claimedFrom(value: unknown): ClaimedJob {
  const [id, fence, attempt, attempts, priority, pushedAt, dueAt, data, rare] = list(value)
  const [key, group, timeout, trace, encoding] = Array.isArray(rare) ? rare : NOTHING_RARE
  return {
    id: text(id),
    fence: integer(fence),
    attempt: integer(attempt),
    attempts: integer(attempts),
    priority: integer(priority),
    group: orNull(group, text),
    key: orNull(key, text),
    timeout: orNull(timeout, integer),
    trace: orNull(trace, text),
    pushedAt: integer(pushedAt),
    dueAt: integer(dueAt),
    data:
      encoding === 'json' ? { encoding, body: text(data) } : untagged((encoding === 'bytes' ? 'b' : 'm') + text(data)),
  }
}

/** PostgreSQL's greatest integer. No claim has a fence above it, and none has 0. */
const MAX_FENCE = 2_147_483_647
export const storedFence = (fence: number): number => (fence > MAX_FENCE ? 0 : fence)

/** Queue, ids and fences. */
export function heldValues(queue: string, holds: readonly Hold[]): [string, string, string] {
  return [queue, plainArray(holds.map(({ id }) => id)), plainArray(holds.map(({ fence }) => storedFence(fence)))]
}

/** @param answer which holds were held, counted from 1; null: all */
export function holdOutcomes(holds: readonly Hold[], answer: unknown): HoldOutcome[] {
  if (answer === null) return holds.map(() => 'ok')
  const outcomes = holds.map((): HoldOutcome => 'stale')
  for (const nth of list(answer)) outcomes[integer(nth) - 1] = 'ok'
  return outcomes
}

/** The results of `complete`; null: none. */
export function resultsText(completions: readonly Completion[]): string | null {
  if (completions.every(({ result }) => result === null)) return null
  return textArray(completions.map(({ result }) => (result === null ? null : tagged(result))))
}

export function recordFrom(value: unknown): JobRecord {
  const job = row(value)
  return {
    id: text(job.id),
    queue: text(job.queue),
    state: JOB_STATES.find((known) => known === job.state) ?? unexpected(job.state, 'a state'),
    priority: integer(job.priority),
    attempt: integer(job.attempt),
    attempts: integer(job.attempts),
    key: orNull(job.key, text),
    group: orNull(job.group, text),
    cost: integer(job.cost),
    timeout: orNull(job.timeout, integer),
    trace: orNull(job.trace, text),
    pushedAt: integer(job.pushedAt),
    dueAt: integer(job.dueAt),
    startedAt: orNull(job.startedAt, integer),
    finishedAt: orNull(job.finishedAt, integer),
    worker: orNull(job.worker, text),
    data: untagged(job.data),
    progress: orNull(job.progress, untagged),
    result: orNull(job.result, untagged),
    error: orNull(job.error, jobErrorFromJson),
  }
}

function sliceFrom(queue: string, value: unknown): HistogramSlice {
  const slice = row(value)
  const buckets: Record<number, number> = {}
  for (const [bucket, count] of Object.entries(row(slice.buckets))) buckets[Number(bucket)] = integer(count)
  return { queue, priority: integer(slice.priority), metric: slice.metric === 'run' ? 'run' : 'wait', buckets }
}

function rateFrom(value: unknown): Rate {
  const { count, per, burst } = row(value)
  return { count: integer(count), per: integer(per), burst: orNull(burst, integer) }
}

function limitsFrom(value: unknown): LimitSettings {
  const limits = row(value)
  return {
    running: orNull(limits.running, integer),
    rate: orNull(limits.rate, rateFrom),
    grouped: limits.grouped === true,
    groupRunning: orNull(limits.groupRunning, integer),
    groupRate: orNull(limits.groupRate, rateFrom),
  }
}

export function groupFrom(value: unknown): GroupRecord {
  const { group, limits, waiting, running, nextStart } = row(value)
  return {
    group: text(group),
    limits: orNull(limits, (given) => {
      const own = row(given)
      return { running: orNull(own.running, integer), rate: orNull(own.rate, rateFrom), weight: Number(own.weight) }
    }),
    waiting: integer(waiting),
    running: integer(running),
    nextStart: orNull(nextStart, integer),
  }
}

export function statsFrom(value: unknown): QueueStats {
  const stats = row(value)
  const queue = text(stats.queue)
  const named = row(stats.counts)
  // Only states that the queue ever had a job in are named.
  const counts = { scheduled: 0, waiting: 0, running: 0, done: 0, dead: 0, cancelled: 0 }
  for (const state of JOB_STATES) counts[state] = integer(named[state] ?? 0)
  return {
    queue,
    paused: stats.paused === true,
    capacity: orNull(stats.capacity, integer),
    counts,
    oldestWaiting: orNull(stats.oldestWaiting, integer),
    limits: orNull(stats.limits, limitsFrom),
    nextStart: orNull(stats.nextStart, integer),
    groupsAtLimit: integer(stats.groupsAtLimit),
    groupsHeld: integer(stats.groupsHeld),
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
      const was = state === 'dead' ? 'dead' : 'waiting'
      return { id: text(id), queue: text(queue), attempt: integer(attempt), state: was }
    }),
    promoted: integer(swept.promoted),
    expired: integer(swept.expired),
    more: swept.more === true,
    nextDue: orNull(swept.nextDue, integer),
    queues: integer(swept.queues),
  }
}
