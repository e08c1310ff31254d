/** What goes over the wire beside plain text and numbers, as `contract/redis/common.lua` tells: MessagePack, encoded values, records. */
import { Packr } from 'msgpackr'
import type { ClaimedJob, Encoded, Encoding, JobError, NewEntry } from '../../values/jobs/records.ts'
import type { Rate } from '../../values/settings/limits.ts'
import { storedError } from '../stored-error.ts'

const packr = new Packr({ useRecords: false, int64AsType: 'number' })

export const pack = (value: unknown): Buffer => packr.pack(value)

/** The value that the bytes are. */
export const unpack = (bytes: Buffer): unknown => packr.unpack(bytes)

/** A list that stands before other bytes, and where those begin. @param from where the list begins */
export function listBefore(bytes: Buffer, from = 0): { list: readonly unknown[]; end: number } {
  let list: unknown
  let end = 0
  packr.unpackMultiple(bytes.subarray(from), (value: unknown, _start?: number, after?: number) => {
    list = value
    end = from + (after ?? bytes.length - from)
    return false
  })
  if (!Array.isArray(list)) throw unexpected(list, 'a list')
  return { list, end }
}

export const ID_BYTES = 16

/** Ids are 16 bytes in Redis, UUIDs in lower-case text everywhere else. */
export function idBytes(id: string): Buffer {
  return Buffer.from(id.replaceAll('-', ''), 'hex')
}

/** One after the other. */
export function idsBytes(jobs: readonly { id: string }[]): Buffer {
  return idBytes(jobs.map(({ id }) => id).join(''))
}

export function idText(bytes: Buffer, at = 0): string {
  const hex = bytes.toString('hex', at, at + ID_BYTES)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Of several, one after the other. */
export function idTexts(bytes: Buffer, from: number): string[] {
  const count = Math.floor((bytes.length - from) / ID_BYTES)
  return Array.from({ length: count }, (_, i) => idText(bytes, from + i * ID_BYTES))
}

export function unexpected(value: unknown, wanted: string): TypeError {
  return new TypeError(`millpond: the server answered with a ${typeof value} where ${wanted} was expected`)
}

export function numberIn(value: unknown): number {
  if (typeof value === 'number') return value
  throw unexpected(value, 'a number')
}

export function bytesIn(value: unknown): Buffer {
  if (Buffer.isBuffer(value)) return value
  throw unexpected(value, 'bytes')
}

/** -1: none. */
export const timeOrNull = (value: unknown): number | null => {
  const number = numberIn(value)
  return number < 0 ? null : number
}

export const numberOrNull = (value: unknown): number | null => (typeof value === 'number' ? value : null)

/** A rate, as scripts keep it. */
export const rateList = ({ count, per, burst }: Rate) => [count, per, burst]

export function rateIn(value: unknown): Rate | null {
  if (!Array.isArray(value)) return null
  const [count, per, burst] = value as readonly unknown[]
  return { count: numberIn(count), per: numberIn(per), burst: numberOrNull(burst) }
}

export function mapIn(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw unexpected(value, 'a map')
}

export const textIn = (value: unknown): string => bytesIn(value).toString()

export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

const ENCODINGS: readonly Encoding[] = ['json', 'msgpack', 'bytes']
const DIGITS: Readonly<Record<Encoding, string>> = { json: '0', msgpack: '1', bytes: '2' }
const ZERO = 0x30

/** One digit, and the body. */
export function encodedBytes({ encoding, body }: Encoded): string | Buffer {
  return typeof body === 'string' ? DIGITS[encoding] + body : Buffer.concat([Buffer.from(DIGITS[encoding]), body])
}

/** One after the other. `sizes`: how many bytes each has. */
export function inOnePiece(items: readonly (string | Buffer)[]): { sizes: number[]; bytes: string | Buffer } {
  const sizes = items.map((item) => Buffer.byteLength(item))
  if (items.every((item) => typeof item === 'string')) return { sizes, bytes: items.join('') }
  return { sizes, bytes: Buffer.concat(items.map((item) => (typeof item === 'string' ? Buffer.from(item) : item))) }
}

/** Nothing: an empty text. */
export const encodedOrNothing = (encoded: Encoded | null): string | Buffer =>
  encoded === null ? '' : encodedBytes(encoded)

/** New lines of claims for their jobs' logs, as scripts take them; null: none has any. */
export function logsIn(holds: readonly { log?: readonly string[] | undefined }[]): (string | false)[] | null {
  if (holds.every(({ log }) => log === undefined)) return null
  return holds.map(({ log }) => log?.join('\n') ?? false)
}

/**
 * What is no encoded value, as another program may have stored it, must not spoil answers with other jobs in them: it fails when it is
 * decoded.
 */
export function encodedIn(bytes: Buffer, at = 0): Encoded {
  const encoding = ENCODINGS[(bytes[at] ?? 0) - ZERO]
  if (encoding === undefined) return { encoding: 'json', body: '' }
  // A copy of bytes: a view would keep the whole answer in memory, and be the caller's to change.
  const body = encoding === 'json' ? bytes.toString('utf8', at + 1) : new Uint8Array(bytes.subarray(at + 1))
  return { encoding, body }
}

const NO_BODY = '-'
const NO_BODY_BYTE = 0x2d
const LENGTH_BYTES = 4

/** What an entry of a journal holds: the length of its meta, the meta, then the encoded body, or `-`. */
export function entryBytes({ meta, body }: Pick<NewEntry, 'meta' | 'body'>): Buffer {
  const encoded = body === null ? NO_BODY : encodedBytes(body)
  const ends = LENGTH_BYTES + Buffer.byteLength(meta)
  const bytes = Buffer.allocUnsafe(ends + Buffer.byteLength(encoded))
  bytes.writeUInt32BE(ends - LENGTH_BYTES)
  bytes.write(meta, LENGTH_BYTES)
  if (typeof encoded === 'string') bytes.write(encoded, ends)
  else encoded.copy(bytes, ends)
  return bytes
}

export function entryIn(bytes: Buffer): Pick<NewEntry, 'meta' | 'body'> {
  const ends = LENGTH_BYTES + bytes.readUInt32BE()
  const body = bytes[ends] === NO_BODY_BYTE ? null : encodedIn(bytes, ends)
  return { meta: bytes.toString('utf8', LENGTH_BYTES, ends), body }
}

type JobRecordFields = Pick<
  ClaimedJob,
  'attempts' | 'priority' | 'group' | 'key' | 'timeout' | 'trace' | 'pushedAt' | 'data'
> & {
  queue: string
  place: number
  /** When it got its place: when it was pushed, or restored. */
  placedAt: number
  cost: number
  /** For how long its key is remembered: after its end, or, below 0, after its push; null: it is not. */
  remember: number | null
}

/** A record. contract/redis/README.md has its form. */
export function recordIn(bytes: Buffer): JobRecordFields {
  const start = 1 + (bytes[0] ?? 0)
  const { list, end } = listBefore(bytes, start)
  const [place, pushedAt, priority, attempts, group, timeout, key, trace, cost, placedAt, remember] = list
  return {
    queue: bytes.toString('utf8', 1, start),
    place: numberIn(place),
    placedAt: numberIn(placedAt ?? pushedAt),
    pushedAt: numberIn(pushedAt),
    priority: numberIn(priority),
    attempts: numberIn(attempts),
    group: textOrNull(group),
    timeout: typeof timeout === 'number' ? timeout : null,
    key: textOrNull(key),
    trace: textOrNull(trace),
    cost: typeof cost === 'number' ? cost : 1,
    data: encodedIn(bytes, end),
    remember: typeof remember === 'number' ? remember : null,
  }
}

export function errorBytes({ code, name, message, stack }: JobError): Buffer {
  return pack(stack === undefined ? [code, name, message] : [code, name, message, stack])
}

export function storedErrorIn(bytes: Buffer): JobError {
  try {
    const [code, name, message, stack] = listBefore(bytes).list
    return storedError({ code, name, message, stack })
  } catch {
    return storedError({})
  }
}
