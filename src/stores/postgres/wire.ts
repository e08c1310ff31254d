/**
 * Batches as they travel: few long texts instead of many values, because parsing rows and arrays is most of what a client does.
 * Texts are joined by U+001F, lines by U+001E; neither occurs raw in JSON. The other side is in `contract/postgres/`.
 */
import type { ClaimedJob, Completion, Encoded, NewJob, PushOutcome } from '../../store.ts'
import { isRow } from './database.ts'

const FIELD = '\x1f'
const LINE = '\x1e'

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
  const data = bodies.join(FIELD)
  // Only where a body was no JSON after all, or there is nothing in it.
  if (data === '' || data.split(FIELD).length !== bodies.length) return undefined
  return { first, ids: `{${ids}}`, data, fresh }
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

/** For `complete`; null: no results. JSON holds no raw U+001F. */
export function resultsText(completions: readonly Completion[]): string | null {
  if (completions.every(({ result }) => result === null)) return null
  return completions.map(({ result }) => (result === null ? '' : tagged(result).replaceAll(FIELD, ' '))).join(FIELD)
}

/** Of a line of `claim`. */
interface Rare {
  key: string | null
  group: string | null
  timeout: number | null
  trace: string | null
  body: string | null
}

const NOTHING_RARE: Rare = { key: null, group: null, timeout: null, trace: null, body: null }

function rareFrom(text: string): Rare {
  const value: unknown = JSON.parse(text)
  if (!isRow(value)) return NOTHING_RARE
  const { key, group, timeout, trace, body } = value
  return {
    key: typeof key === 'string' ? key : null,
    group: typeof group === 'string' ? group : null,
    timeout: typeof timeout === 'number' ? timeout : null,
    trace: typeof trace === 'string' ? trace : null,
    body: typeof body === 'string' ? body : null,
  }
}

/** A claimed job with its place. */
export interface PlacedJob {
  seq: number
  job: ClaimedJob
}

export function claimedFrom(text: string): PlacedJob[] {
  return text.split(LINE).map((line) => {
    const [seq, id = '', fence, attempt, attempts, priority, pushedAt, dueAt, rare = '', data = ''] = line.split(FIELD)
    const { body, ...known } = rare === '' ? NOTHING_RARE : rareFrom(rare)
    const job = {
      id,
      fence: Number(fence),
      attempt: Number(attempt),
      attempts: Number(attempts),
      priority: Number(priority),
      group: known.group,
      key: known.key,
      timeout: known.timeout,
      trace: known.trace,
      pushedAt: Number(pushedAt),
      dueAt: Number(dueAt),
      data: body === null ? { encoding: 'json' as const, body: data } : untagged(body),
    }
    return { seq: Number(seq), job }
  })
}
