/**
 * How jobs and claims cross between the threads: jobs as one flat list of values per call, claims as one text.
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
  attempts: number | null
  timeout: number | null
  group: string | null
  trace: string | null
  /** One after the other. */
  ids: string
  /** JSON: a list of what each job's data is as text. */
  bodies: string
}

/** Of a UUID as text. */
const ID_LENGTH = 36

export type PackedJobs = Value[] | AlikeJobs

export function packJobs(jobs: readonly NewJob[]): PackedJobs {
  const [first] = jobs
  if (first === undefined || jobs.length === 1 || !jobs.every((job) => isAlike(job, first))) return flattenJobs(jobs)
  const { queue, priority, delay, runAt, attempts, timeout, group, trace } = first
  const ids = jobs.map(({ id }) => id).join('')
  const bodies = JSON.stringify(jobs.map(({ data }) => data.body))
  return { count: jobs.length, queue, priority, delay, runAt, attempts, timeout, group, trace, ids, bodies }
}

function isAlike(job: NewJob, first: NewJob): boolean {
  return (
    job.id.length === ID_LENGTH &&
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
export function flattenAlike({ ids, bodies, ...jobs }: AlikeJobs): Value[] {
  const { queue, priority, delay, runAt, attempts, timeout, group, trace } = jobs
  const list: unknown = JSON.parse(bodies)
  if (!Array.isArray(list)) throw new TypeError('millpond: bodies are not a list')
  const flat: Value[] = []
  for (const [at, id] of idsOf(ids).entries()) {
    flat.push(id, queue, priority, delay, runAt, attempts, timeout, null, group, trace, 'json', text(list[at]))
  }
  return flat
}

export function idsOf(ids: string): string[] {
  return Array.from({ length: ids.length / ID_LENGTH }, (_, at) => ids.slice(at * ID_LENGTH, (at + 1) * ID_LENGTH))
}

export const HOLD_FIELDS = 2

export function flattenHolds(holds: readonly Hold[]): Value[] {
  const flat: Value[] = []
  for (const { id, fence } of holds) flat.push(id, fence)
  return flat
}

export const COMPLETION_FIELDS = 4

/** Completions without results, as JSON: an object with each id's fence. In one statement they take half of the time. */
export interface PlainCompletions {
  count: number
  held: string
}

export type PackedCompletions = Value[] | PlainCompletions

export function packCompletions(completions: readonly Completion[]): PackedCompletions {
  if (completions.length === 1 || completions.some(({ result }) => result !== null))
    return flattenCompletions(completions)
  // Not of an object, which would lose an id that is there twice, and is slow to build from so many names.
  const held = completions.map(({ id, fence }) => `${JSON.stringify(id)}:${fence}`).join(',')
  return { count: completions.length, held: `{${held}}` }
}

export function flattenCompletions(completions: readonly Completion[]): Value[] {
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

/** What a claim took: per job the JSON list of `claim.sql`, and its data. In no order. */
export interface PackedClaim {
  now: number
  lease: number
  jobs: Value[][]
  retryAfter: number | null
}

function factsFrom(json: unknown): unknown[] {
  const facts: unknown = JSON.parse(text(json))
  if (!Array.isArray(facts)) throw new TypeError('millpond: a claimed job is no list')
  return facts
}

/** In the order in which they are to run. */
export function claimedFrom(packed: readonly Value[][]): ClaimedJob[] {
  const rows = packed.map(([json, data]) => ({ facts: factsFrom(json), data }))
  rows.sort((a, b) => integer(b.facts[0]) - integer(a.facts[0]) || integer(a.facts[1]) - integer(b.facts[1]))
  return rows.map(({ facts: row, data }) => ({
    priority: integer(row[0]),
    id: text(row[2]),
    fence: integer(row[3]),
    attempt: integer(row[4]),
    attempts: integer(row[5]),
    group: textOrNull(bindable(row[6])),
    key: textOrNull(bindable(row[7])),
    timeout: integerOrNull(bindable(row[8])),
    trace: textOrNull(bindable(row[9])),
    pushedAt: integer(row[10]),
    dueAt: integer(row[11]),
    data: encodedFrom(row[12], data),
  }))
}
