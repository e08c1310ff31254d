/** What goes over the wire beside plain text and numbers, as `contract/redis/common.lua` tells: MessagePack, encoded values, records. */
import { Packr } from 'msgpackr'
import type { ClaimedJob, Encoded, Encoding, JobError, NewJob } from '../../store.ts'

const packr = new Packr({ useRecords: false, int64AsType: 'number' })

export const pack = (value: unknown): Buffer => packr.pack(value)
export const unpack = (bytes: Buffer): unknown => packr.unpack(bytes)

/** A list that stands before other bytes, and where those begin. */
export function listBefore(bytes: Buffer): { list: readonly unknown[]; end: number } {
  let list: unknown
  let end = 0
  packr.unpackMultiple(bytes, (value: unknown, _start?: number, after?: number) => {
    list = value
    end = after ?? bytes.length
    return false
  })
  if (!Array.isArray(list)) throw unexpected(list, 'a list')
  return { list, end }
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

export const textIn = (value: unknown): string => bytesIn(value).toString()

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

const ENCODINGS: readonly Encoding[] = ['json', 'msgpack', 'bytes']
const DIGITS: Readonly<Record<Encoding, string>> = { json: '0', msgpack: '1', bytes: '2' }
const ZERO = 0x30

/** One digit, and the body. */
export function encodedBytes({ encoding, body }: Encoded): string | Buffer {
  return typeof body === 'string' ? DIGITS[encoding] + body : Buffer.concat([Buffer.from(DIGITS[encoding]), body])
}

/** Nothing: an empty text. */
export const encodedOrNothing = (encoded: Encoded | null): string | Buffer =>
  encoded === null ? '' : encodedBytes(encoded)

export function encodedIn(bytes: Buffer, at = 0): Encoded {
  const encoding = ENCODINGS[(bytes[at] ?? 0) - ZERO]
  if (encoding === undefined) throw unexpected(bytes[at], 'the digit of an encoding')
  // A copy of bytes: a view would keep the whole answer in memory, and be the caller's to change.
  const body = encoding === 'json' ? bytes.toString('utf8', at + 1) : new Uint8Array(bytes.subarray(at + 1))
  return { encoding, body }
}

/** What a push says of a job beside its id and data. */
export function valuesOf({ priority, delay, runAt, attempts, timeout, group, key, trace }: NewJob): unknown[] {
  return [priority, delay, runAt, attempts, timeout, group, key, trace]
}

/** Whether nothing is given but the priority. */
export function isPlain({ delay, runAt, attempts, timeout, group, key, trace }: NewJob): boolean {
  const timed = delay !== 0 || runAt !== null || attempts !== null || timeout !== null
  return !timed && group === null && key === null && trace === null
}

type Kept = Pick<ClaimedJob, 'attempts' | 'priority' | 'group' | 'key' | 'timeout' | 'trace' | 'pushedAt' | 'data'> & {
  place: number
}

/** A record, whose layout is told in contract/redis/common.lua. */
export function recordIn(bytes: Buffer): Kept {
  const { list, end } = listBefore(bytes)
  const [place, pushedAt, priority, attempts, group, timeout, key, trace] = list
  return {
    place: numberIn(place),
    pushedAt: numberIn(pushedAt),
    priority: numberIn(priority),
    attempts: numberIn(attempts),
    group: textOrNull(group),
    timeout: typeof timeout === 'number' ? timeout : null,
    key: textOrNull(key),
    trace: textOrNull(trace),
    data: encodedIn(bytes, end),
  }
}

export function errorBytes({ code, name, message, stack }: JobError): Buffer {
  return pack(stack === undefined ? [code, name, message] : [code, name, message, stack])
}

export function errorIn(bytes: Buffer): JobError {
  const [code, name, message, stack] = listBefore(bytes).list
  const error: JobError = { code: String(code), name: String(name), message: String(message) }
  if (typeof stack === 'string') error.stack = stack
  return error
}
