/**
 * How payloads and results are encoded. A byte string alone stays bytes. A value that JSON carries without loss is JSON. A value that holds
 * byte strings, big integers or non-finite numbers is MessagePack. `contract/vectors/encoding.json` pins all three, and what is refused.
 */
import { types } from 'node:util'
import { Packr } from 'msgpackr'
import { MillpondError } from '../errors/errors.ts'
import { errorSummary } from '../errors/safe-error.ts'
import type { Encoded } from '../jobs/records.ts'
import { DEFAULTS } from '../settings/contract-defaults.ts'
import { checkMessagePack } from './plain-msgpack.ts'
import { isSealed, sealKeyId } from './sealed-form.ts'
import { illFormedAt, mayEscapeHalf } from './well-formed.ts'

/** 1 MiB: the size limit of an encoded payload unless `maxPayload` says otherwise. */
export const MAX_PAYLOAD = DEFAULTS.payload.max

/** 16 MiB: `maxPayload` may be no larger, as the stores keep nothing above it: see contract/operations.md. */
export const LARGEST_PAYLOAD = DEFAULTS.bounds.body.most

/** Deeper than any real payload, and shallow enough that no parser's stack is in danger. A circular reference gets here too. */
const MAX_DEPTH = 200

const UTF_8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** No records and no string bundles: plain MessagePack that every language reads. */
const packr = new Packr({ useRecords: false, variableMapSize: true, mapsAsObjects: true, int64AsType: 'bigint' })

/**
 * @param what names the value in errors: 'data' or 'result'
 * @param limit in bytes of the encoded form
 * @throws PayloadNotEncodable, PayloadTooLarge
 */
export function encode(value: unknown, what: string, limit: number): Encoded {
  let encoded: Encoded
  try {
    if (types.isUint8Array(value)) {
      checkSize(value.byteLength, what, limit)
      // What looks sealed would not come back as it is.
      if (isSealed(value)) return inMessagePack(value, what)
      return { encoding: 'bytes', body: new Uint8Array(value) }
    }
    if (value === undefined) return { encoding: 'json', body: 'null' }
    encoded = fitsJson(value, what, 0) ? inJson(value, what) : inMessagePack(value, what)
  } catch (error) {
    if (error instanceof MillpondError) throw error
    // A getter or a toJSON that throws, or a text longer than a string can be. What it says may be part of the payload.
    throw new MillpondError('PayloadNotEncodable', `${what} cannot be stored: ${errorSummary(error)}`)
  }
  const { body } = encoded
  // A UTF-16 unit takes at most 3 bytes of UTF-8, so short texts need no counting.
  if (typeof body !== 'string') checkSize(body.byteLength, what, limit)
  else if (body.length * 3 > limit) checkSize(Buffer.byteLength(body), what, limit)
  return encoded
}

/** @throws PayloadNotDecodable, PayloadSealed; it shows nothing of the payload, as the parsers' own messages would */
export function decode(encoded: Encoded, what: string): unknown {
  const { encoding, body } = encoded
  const notDecodable = (reason?: string) =>
    new MillpondError('PayloadNotDecodable', `${what} is not valid ${encoding}${reason ? `: ${reason}` : ''}`)
  try {
    if (encoding === 'json') {
      const text = typeof body === 'string' ? body : UTF_8.decode(body)
      const value: unknown = JSON.parse(text)
      // Other programs may have stored it. Handed on, it would spoil the answers in which the value stands beside others.
      if (mayEscapeHalf(text) && illFormedAt(value) !== undefined)
        throw notDecodable('it holds half of a surrogate pair')
      return value
    }
    if (typeof body !== 'string') {
      if (encoding === 'bytes') {
        if (isSealed(body)) throw sealedError(body, what)
        return body
      }
      if (encoding === 'msgpack') {
        checkMessagePack(body, MAX_DEPTH, notDecodable)
        return packr.unpack(body)
      }
    }
  } catch (error) {
    if (error instanceof MillpondError) throw error
  }
  throw notDecodable()
}

/** Of a payload that is to go elsewhere as it is: what only its own place opens. @throws PayloadSealed */
export function assertOpened({ encoding, body }: Encoded, what: string): void {
  if (encoding === 'bytes' && isSealed(body)) throw sealedError(body, what)
}

function sealedError(body: Uint8Array, what: string): MillpondError {
  const id = sealKeyId(body)
  const key = id === undefined || !/^[\w.:-]+$/.test(id) ? 'a key without a name' : `the key "${id}"`
  const message = `${what} is sealed with ${key}, which this process has not, or which does not fit: open the pond with seal: { keys }`
  return new MillpondError('PayloadSealed', message)
}

/** Whether it is nested deeper than `encode` takes, so that it could not be encoded again. */
export function isNestedTooDeep(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null || types.isUint8Array(value)) return false
  return depth === MAX_DEPTH || Object.values(value).some((item) => isNestedTooDeep(item, depth + 1))
}

function checkSize(bytes: number, what: string, limit: number): void {
  if (bytes > limit) {
    throw new MillpondError(
      'PayloadTooLarge',
      `${what} is ${bytes} bytes encoded, over the limit of ${limit}; store it elsewhere and push a reference, or raise maxPayload`,
    )
  }
}

function refuse(what: string, reason: string): never {
  throw new MillpondError('PayloadNotEncodable', `${what} cannot be stored: it holds ${reason}`)
}

function inJson(value: unknown, what: string): Encoded {
  const body = JSON.stringify(value)
  // JSON.stringify escapes half of a pair, and nothing else, in this form. A text may hold the same characters.
  if (mayEscapeHalf(body)) checkWellFormed(JSON.parse(body), what)
  return { encoding: 'json', body }
}

function inMessagePack(value: unknown, what: string): Encoded {
  const plain = forMessagePack(value, what)
  checkWellFormed(plain, what)
  return { encoding: 'msgpack', body: new Uint8Array(packr.pack(plain)) }
}

/** @throws PayloadNotEncodable, with the path to the text */
export function checkWellFormed(value: unknown, what: string): void {
  const path = illFormedAt(value)
  if (path === undefined) return
  const message = `half of a surrogate pair, such as a cut emoji: cut text between whole characters, or mend it with toWellFormed()`
  throw new MillpondError(
    'PayloadNotEncodable',
    `${what} cannot be stored: ${path === '' ? 'it' : `the text at ${path}`} holds ${message}`,
    { issues: [{ message: `holds ${message}`, path }] },
  )
}

/** Whether JSON carries the value without loss. @throws PayloadNotEncodable where no encoding does */
function fitsJson(value: unknown, what: string, depth: number): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'undefined':
      return true
    case 'number':
      return Number.isFinite(value)
    case 'bigint':
      return false
    case 'object':
      break
    default:
      return refuse(what, `a ${typeof value}`)
  }
  if (value === null) return true
  if (depth === MAX_DEPTH) return refuse(what, `more than ${MAX_DEPTH} levels, or refers to itself`)
  if (Array.isArray(value)) {
    let fits = true
    for (const item of value) fits = fitsJson(item, what, depth + 1) && fits
    return fits
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  const isPlain = prototype === Object.prototype || prototype === null
  if (!isPlain || 'toJSON' in value) {
    if (types.isUint8Array(value)) return false
    const replaced = replacement(value, what)
    if (replaced !== value) return fitsJson(replaced, what, depth + 1)
  }
  let fits = true
  // for-in is the fast walk; keys from a prototype are left to the own-property check, as JSON.stringify leaves them out.
  for (const key in value) {
    if (Object.hasOwn(value, key)) fits = fitsJson(value[key as keyof typeof value], what, depth + 1) && fits
  }
  return fits
}

/** What stands for an object of a class: what its toJSON gives, or itself as a plain object. @throws PayloadNotEncodable */
function replacement(value: object, what: string): unknown {
  if (types.isDate(value) && Number.isNaN(value.getTime())) return refuse(what, 'an invalid Date')
  if ('toJSON' in value && typeof value.toJSON === 'function') return value.toJSON('')
  const tag = Object.prototype.toString.call(value).slice(8, -1)
  if (tag !== 'Object' && tag !== 'Arguments') return refuse(what, `a ${tag}`)
  return value
}

/** A copy in which everything is what MessagePack has a type for, with the same replacements that JSON would make. */
function forMessagePack(value: unknown, what: string): unknown {
  if (value === undefined) return null
  if (typeof value === 'bigint' && (value < -(2n ** 63n) || value >= 2n ** 64n)) {
    return refuse(what, 'an integer over 64 bits')
  }
  if (typeof value !== 'object' || value === null) return value
  if (types.isUint8Array(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  // Not map: it would leave the holes of a sparse array, for which MessagePack has nothing.
  if (Array.isArray(value)) return Array.from(value, (item) => forMessagePack(item, what))
  const replaced = replacement(value, what)
  if (replaced !== value) return forMessagePack(replaced, what)
  const copy: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(value)) {
    if (key === '__proto__') return refuse(what, 'a key named __proto__ beside binary data')
    if (item !== undefined) copy[key] = forMessagePack(item, what)
  }
  return copy
}
