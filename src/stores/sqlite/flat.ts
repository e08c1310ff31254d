/**
 * How jobs and claims cross between the threads: as one flat list of values per call.
 * Cloning a list of strings and numbers costs a third of cloning the objects, and most of that is on the event loop.
 */
import type { ClaimedJob, Completion, Encoded, Encoding, Hold, NewJob } from '../../store.ts'
import { bindable, integer, integerOrNull, text, textOrNull, type Value } from './values.ts'

/** A copy: cloning a view would carry its whole buffer along, and the caller may change its bytes after the call. */
const sent = (body: string | Uint8Array): Value => (typeof body === 'string' ? body : new Uint8Array(body))

export const JOB_FIELDS = 12

/** The order is that of `Engine.push`. */
export function flattenJobs(jobs: readonly NewJob[]): Value[] {
  const flat: Value[] = []
  for (const { id, queue, priority, delay, runAt, attempts, timeout, key, group, trace, data } of jobs) {
    flat.push(id, queue, priority, delay, runAt, attempts, timeout, key, group, trace, data.encoding, sent(data.body))
  }
  return flat
}

/**
 * Jobs that differ in id and data alone, as most of a batch do, and whose data is JSON. They go to SQLite in one statement
 * with one text, which is half again as fast as a statement per job, and costs the event loop a quarter.
 */
export interface AlikeJobs {
  count: number
  queue: string
  priority: number
  delay: number
  runAt: number | null
  attempts: number
  timeout: number | null
  group: string | null
  trace: string | null
  /** JSON: a list of [id, data]. */
  pairs: string
}

export type PackedJobs = Value[] | AlikeJobs

export function packJobs(jobs: readonly NewJob[]): PackedJobs {
  const [first] = jobs
  if (first === undefined || jobs.length === 1 || !jobs.every((job) => isAlike(job, first))) return flattenJobs(jobs)
  const { queue, priority, delay, runAt, attempts, timeout, group, trace } = first
  const pairs = JSON.stringify(jobs.map(({ id, data }) => [id, data.body]))
  return { count: jobs.length, queue, priority, delay, runAt, attempts, timeout, group, trace, pairs }
}

function isAlike(job: NewJob, first: NewJob): boolean {
  return (
    job.data.encoding === 'json' &&
    typeof job.data.body === 'string' &&
    job.key === null &&
    job.queue === first.queue &&
    job.priority === first.priority &&
    job.delay === first.delay &&
    job.runAt === first.runAt &&
    job.attempts === first.attempts &&
    job.timeout === first.timeout &&
    job.group === first.group &&
    job.trace === first.trace
  )
}

/** As `flattenJobs` would have it. */
export function flattenAlike({ pairs, ...jobs }: AlikeJobs): Value[] {
  const { queue, priority, delay, runAt, attempts, timeout, group, trace } = jobs
  const flat: Value[] = []
  for (const [id, body] of pairsOf(pairs)) {
    flat.push(id, queue, priority, delay, runAt, attempts, timeout, null, group, trace, 'json', body)
  }
  return flat
}

export function pairsOf(pairs: string): [id: string, body: string][] {
  const list: unknown = JSON.parse(pairs)
  if (!Array.isArray(list)) throw new TypeError('millpond: pairs are not a list')
  return list.map(([id, body]: unknown[]) => [text(id), text(body)])
}

export const HOLD_FIELDS = 2

export function flattenHolds(holds: readonly Hold[]): Value[] {
  const flat: Value[] = []
  for (const { id, fence } of holds) flat.push(id, fence)
  return flat
}

export const COMPLETION_FIELDS = 4

/** Completions without results, as JSON: a list of [id, fence]. In one statement they take two thirds of the time. */
export interface PlainCompletions {
  count: number
  held: string
}

export type PackedCompletions = Value[] | PlainCompletions

export function packCompletions(completions: readonly Completion[]): PackedCompletions {
  if (completions.length === 1 || completions.some(({ result }) => result !== null))
    return flattenCompletions(completions)
  return { count: completions.length, held: JSON.stringify(completions.map(({ id, fence }) => [id, fence])) }
}

export function heldFrom(held: string): [id: string, fence: number][] {
  const list: unknown = JSON.parse(held)
  if (!Array.isArray(list)) throw new TypeError('millpond: held is not a list')
  return list.map(([id, fence]: unknown[]) => [text(id), integer(fence)])
}

function flattenCompletions(completions: readonly Completion[]): Value[] {
  const flat: Value[] = []
  for (const { id, fence, result } of completions) {
    if (result === null) flat.push(id, fence, null, null)
    else flat.push(id, fence, result.encoding, sent(result.body))
  }
  return flat
}

/** Of what travels as an object. */
export function copied(encoded: Encoded | null): Encoded | null {
  if (encoded === null || typeof encoded.body === 'string') return encoded
  return { encoding: encoded.encoding, body: new Uint8Array(encoded.body) }
}

export function encodedFrom(encoding: unknown, body: unknown): Encoded {
  return { encoding: encodingFrom(encoding), body: body instanceof Uint8Array ? body : text(body) }
}

function encodingFrom(value: unknown): Encoding {
  if (value === 'json' || value === 'msgpack' || value === 'bytes') return value
  throw new TypeError(`millpond: ${String(value)} is no encoding`)
}

export const CLAIM_FIELDS = 13

/** The columns of `claim.sql` without the first two, which only order them. */
export function flattenClaimed(rows: readonly Value[][]): Value[] {
  const flat: Value[] = []
  for (const row of rows) {
    // Written out, as a spread of a slice takes twice as long, and this is the hottest loop there is.
    flat.push(row[0] ?? null)
    for (let i = 2; i < row.length; i++) flat.push(row[i] ?? null)
  }
  return flat
}

export function claimedFrom(flat: readonly Value[]): ClaimedJob[] {
  const jobs: ClaimedJob[] = []
  for (let i = 0; i < flat.length; i += CLAIM_FIELDS) {
    jobs.push({
      priority: integer(flat[i]),
      id: text(flat[i + 1]),
      fence: integer(flat[i + 2]),
      attempt: integer(flat[i + 3]),
      attempts: integer(flat[i + 4]),
      group: textOrNull(bindable(flat[i + 5])),
      key: textOrNull(bindable(flat[i + 6])),
      timeout: integerOrNull(bindable(flat[i + 7])),
      trace: textOrNull(bindable(flat[i + 8])),
      pushedAt: integer(flat[i + 9]),
      dueAt: integer(flat[i + 10]),
      data: encodedFrom(flat[i + 11], flat[i + 12]),
    })
  }
  return jobs
}
