/**
 * Batches as they travel: few long texts instead of many values, because parsing rows is most of what a client does. Data in them is
 * quoted, as an array's or JSON's elements: nothing that a producer stores can break an answer.
 */

import type {
  ClaimedJob,
  Encoded,
  Entry,
  Hold,
  HoldOutcome,
  JobOutcome,
  JobRecord,
  NewEntry,
  NewJob,
  PushOutcome,
} from '../../values/jobs/records.ts'
import { storedErrorFromJson } from '../stored-error.ts'

export const orNull = <T, Read>(value: T | null | undefined, read: (value: T) => Read): Read | null =>
  value === null || value === undefined ? null : read(value)

/** A body as one text: a tag for the encoding, then JSON, or bytes in base64. */
export function tagged({ encoding, body }: Encoded): string {
  if (encoding === 'json') return `j${typeof body === 'string' ? body : Buffer.from(body).toString()}`
  const bytes =
    typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return `${encoding === 'bytes' ? 'b' : 'm'}${bytes.toString('base64')}`
}

const ENCODINGS = { j: 'json', m: 'msgpack', b: 'bytes' } as const

export const untagged = (text: string): Encoded => encoded(ENCODINGS[text[0] as keyof typeof ENCODINGS], text.slice(1))

function encoded(encoding: Encoded['encoding'], text: string): Encoded {
  if (encoding === 'json') return { encoding, body: text }
  // A buffer of its own, since small ones share a pool that the caller must not see.
  return { encoding, body: new Uint8Array(Buffer.from(text, 'base64')) }
}

/** An array's text; for elements without quotes, backslashes and commas. */
export const plainArray = (values: readonly (string | number)[]): string => `{${values.join(',')}}`

/** An array's text, whatever the elements hold. */
export const textArray = (values: readonly (string | null)[]): string =>
  `{${values.map((value) => (value === null ? 'null' : `"${value.replaceAll(/["\\]/g, '\\$&')}"`)).join(',')}}`

/** The texts of bodies, as an array's text; null: there is none. */
export function bodiesText(bodies: readonly (Encoded | null)[]): string | null {
  if (bodies.every((body) => body === null)) return null
  return textArray(bodies.map((body) => orNull(body, tagged)))
}

/** Lines of a log, as one text; null: none. */
export const linesText = (log: readonly string[] | undefined): string | null => log?.join('\n') ?? null

/** Of several claims, as an array's text; null: none has any. */
export function logsText(holds: readonly Hold[]): string | null {
  if (holds.every(({ log }) => log === undefined)) return null
  return textArray(holds.map(({ log }) => linesText(log)))
}

/** An entry of a journal. */
export const taggedEntry = ({ name, meta, body }: NewEntry) => ({ name, meta, body: orNull(body, tagged) })

/** An entry of `entries`. */
export type EntryList = [n: number, name: string, meta: string, body: string | null]

export const entryFrom = ([n, name, meta, body]: EntryList): Entry => ({ n, name, meta, body: orNull(body, untagged) })

/** For `push_jobs`. */
export function jobsText(jobs: readonly NewJob[]): string {
  return JSON.stringify(jobs.map((job) => ({ ...job, data: tagged(job.data) })))
}

/** From texts such as `pushed 019b…`. */
export function outcomeFrom(answer: string): PushOutcome {
  const [status, id = '', parent] = answer.split(' ')
  return { status: status as PushOutcome['status'], id, ...(parent !== undefined && { parent }) }
}

type Rare = [
  key: string | null,
  group: string | null,
  timeout: number | null,
  trace: string | null,
  encoding: Encoded['encoding'],
  journal?: number | null,
]
/** A job of `claim`, in the order that `claim.sql` gives. */
export type ClaimedList = [
  ...[id: string, fence: number, attempt: number, attempts: number, priority: number, pushedAt: number, dueAt: number],
  ...[data: string, rare?: Rare],
]
const NOTHING_RARE: Rare = [null, null, null, null, 'json']

export function claimedFrom(job: ClaimedList): ClaimedJob {
  const [id, fence, attempt, attempts, priority, pushedAt, dueAt, data, rare = NOTHING_RARE] = job
  const [key, group, timeout, trace, encoding, journal] = rare
  return {
    id,
    fence,
    attempt,
    attempts,
    priority,
    group,
    key,
    timeout,
    trace,
    pushedAt,
    dueAt,
    data: encoded(encoding, data),
    ...(journal && { journal }),
  }
}

/** No claim has 0. */
export const storedFence = (fence: number): number => (Number.isSafeInteger(fence) ? fence : 0)

/** Ids and fences. */
export function heldValues(holds: readonly Hold[]): [string, string] {
  return [plainArray(holds.map(({ id }) => id)), plainArray(holds.map(({ fence }) => storedFence(fence)))]
}

/** @param held which holds were held, counted from 1; null: all */
export function holdOutcomes(holds: readonly Hold[], held: readonly number[] | null): HoldOutcome[] {
  if (held === null) return holds.map(() => 'ok')
  const outcomes = holds.map((): HoldOutcome => 'stale')
  for (const nth of held) outcomes[nth - 1] = 'ok'
  return outcomes
}

/**
 * Which claimed jobs a replica shows. A push with a key may have stored no row of its own, so of a job with a key it must show the claim.
 * @param fences JSON: the fence of each job that is there, by id; null: none is
 */
export function shownJobs(
  claims: readonly Pick<ClaimedJob, 'id' | 'key' | 'fence'>[],
  fences: string | null,
): boolean[] {
  const there = new Map<string, unknown>(Object.entries(JSON.parse(fences ?? '{}')))
  return claims.map(({ id, key, fence }) => {
    const shown = there.get(id)
    return typeof shown === 'number' && (key === null || shown >= fence)
  })
}

/** Fields that records have only where they have a value; in answers they are null else. */
type Rarely = 'unique' | 'waitsFor' | 'onDead' | 'journal' | 'parked'

/** A record of `find` and `list`, with its bodies as tagged texts. */
export type TaggedRecord = Omit<JobRecord, 'data' | 'progress' | 'result' | 'error' | 'log' | Rarely | 'entries'> & {
  data: string
} & { [Name in Rarely]?: JobRecord[Name] | null } & Record<'progress' | 'result' | 'error' | 'log', string | null>

/** An outcome, with its result as a tagged text. */
export type TaggedOutcome = Omit<JobOutcome, 'result' | 'error'> & Record<'result' | 'error', string | null>

export const storedOutcomeFrom = ({ result, error, ...outcome }: TaggedOutcome): JobOutcome => ({
  ...outcome,
  result: orNull(result, untagged),
  error: orNull(error, storedErrorFromJson),
})

/** For `restore`. */
export function taggedFrom({ data, progress, result, error, log, journal: _, ...job }: JobRecord) {
  const { entries, ...rest } = job
  return {
    ...rest,
    ...(entries && { entries: entries.map(taggedEntry) }),
    data: tagged(data),
    progress: orNull(progress, tagged),
    result: orNull(result, tagged),
    error: orNull(error, JSON.stringify),
    log: linesText(log),
  }
}

export function recordFrom(record: TaggedRecord): JobRecord {
  const { data, progress, result, error, log, unique, follows, waitsFor, onDead, journal, parked, ...job } = record
  return {
    ...job,
    data: untagged(data),
    progress: orNull(progress, untagged),
    result: orNull(result, untagged),
    error: orNull(error, storedErrorFromJson),
    ...(log !== null && { log: log.split('\n') }),
    ...(unique && { unique }),
    ...(follows && { follows }),
    ...(waitsFor && { waitsFor }),
    ...(onDead && { onDead }),
    ...(journal && { journal }),
    ...(typeof parked === 'string' && { parked }),
  }
}
