/**
 * Batches as they travel: few long texts instead of many values, because parsing rows is most of what a client does. What data can be
 * in them is quoted, as an array's or JSON's elements: nothing that a producer stores can break an answer.
 */
import type { ClaimedJob, Completion, Encoded, NewJob, PushOutcome } from '../../store.ts'

/** A tag for the encoding, then JSON, or bytes in base64. */
export function tagged({ encoding, body }: Encoded): string {
  if (encoding === 'json') return `j${typeof body === 'string' ? body : Buffer.from(body).toString()}`
  const bytes =
    typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return `${encoding === 'bytes' ? 'b' : 'm'}${bytes.toString('base64')}`
}

export function untagged(text: string): Encoded {
  if (text.startsWith('j')) return { encoding: 'json', body: text.slice(1) }
  // A buffer of its own, since small ones share a pool that the caller must not see.
  const body = new Uint8Array(Buffer.from(text.slice(1), 'base64'))
  return { encoding: text.startsWith('b') ? 'bytes' : 'msgpack', body }
}

/** An array's text; for elements without quotes, backslashes and commas. */
export const plainArray = (values: readonly (string | number)[]): string => `{${values.join(',')}}`

/** An array's text, whatever the elements hold. */
export const textArray = (values: readonly (string | null)[]): string =>
  `{${values.map((value) => (value === null ? 'null' : `"${value.replaceAll(/["\\]/g, '\\$&')}"`)).join(',')}}`

/** Jobs that differ in id and data alone; undefined: they differ in more. */
export interface Alike {
  first: NewJob
  ids: string
  data: string
  /** All are. */
  fresh: boolean
}

export function alike(jobs: readonly NewJob[]): Alike | undefined {
  const [first] = jobs
  if (first === undefined) return undefined
  const bodies: string[] = []
  let ids = ''
  let fresh = true
  for (const job of jobs) {
    const { encoding, body } = job.data
    if (
      job.queue !== first.queue ||
      job.key !== null ||
      encoding !== 'json' ||
      typeof body !== 'string' ||
      job.priority !== first.priority ||
      job.delay !== first.delay ||
      job.runAt !== first.runAt ||
      job.attempts !== first.attempts ||
      job.group !== first.group ||
      job.timeout !== first.timeout ||
      job.trace !== first.trace
    )
      return undefined
    if (job.fresh !== true) fresh = false
    ids += ids === '' ? job.id : `,${job.id}`
    bodies.push(body)
  }
  return { first, ids: `{${ids}}`, data: textArray(bodies), fresh }
}

/** For `push_jobs`. */
export function jobsText(jobs: readonly NewJob[]): string {
  return JSON.stringify(jobs.map((job) => ({ ...job, data: tagged(job.data) })))
}

const STATUSES: readonly PushOutcome['status'][] = ['pushed', 'existing', 'full']

/** From texts such as `pushed 019b…`. */
export function outcomeFrom(text: string): PushOutcome {
  const at = text.indexOf(' ')
  const status = STATUSES.find((known) => known === text.slice(0, at))
  if (status === undefined) throw new TypeError(`millpond: push answered ${text}`)
  return { status, id: text.slice(at + 1) }
}

/** For `complete`; null: no results. */
export function resultsText(completions: readonly Completion[]): string | null {
  if (completions.every(({ result }) => result === null)) return null
  return textArray(completions.map(({ result }) => (result === null ? null : tagged(result))))
}

function unexpected(value: unknown): never {
  throw new TypeError(`millpond: claim answered ${typeof value} in a job's place`)
}
const text = (value: unknown): string => (typeof value === 'string' ? value : unexpected(value))
const number = (value: unknown): number => (typeof value === 'number' ? value : unexpected(value))
const textOrNull = (value: unknown): string | null => (value === null ? null : text(value))

const NOTHING_RARE = [null, null, null, null, 'json']

/** A job of `claim`: a list, in the order that `claim.sql` gives. */
export function claimedFrom(value: unknown): ClaimedJob {
  if (!Array.isArray(value)) return unexpected(value)
  const [id, fence, attempt, attempts, priority, pushedAt, dueAt, data, rare] = value
  const [key, group, timeout, trace, encoding]: unknown[] = Array.isArray(rare) ? rare : NOTHING_RARE
  return {
    id: text(id),
    fence: number(fence),
    attempt: number(attempt),
    attempts: number(attempts),
    priority: number(priority),
    group: textOrNull(group),
    key: textOrNull(key),
    timeout: timeout === null ? null : number(timeout),
    trace: textOrNull(trace),
    pushedAt: number(pushedAt),
    dueAt: number(dueAt),
    data:
      encoding === 'json' ? { encoding, body: text(data) } : untagged((encoding === 'bytes' ? 'b' : 'm') + text(data)),
  }
}
