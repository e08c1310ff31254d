/** From a request's body to a value: read within bounds, then parsed by its Content-Type. */

import { types } from 'node:util'
import { Packr } from 'msgpackr'
import { isMessagePack } from '../values/encoding/accept.ts'
import { checkMessagePack } from '../values/encoding/plain-msgpack.ts'
import { isMillpondError } from '../values/errors/errors.ts'
import { isError } from '../values/runtime/realms.ts'
import { type BodyLimits, BoundedReader, malformed } from './body-limits.ts'
import { fieldsOf, parseForm } from './form.ts'
import { type ContentType, contentType } from './headers.ts'
import { parseJson } from './json.ts'
import { unsupportedType } from './problem.ts'

const SUPPORTED =
  'application/json, application/x-www-form-urlencoded, multipart/form-data, ' +
  'application/msgpack, application/vnd.msgpack, application/x-msgpack'

/**
 * The body as a value; undefined if there is neither a body nor a Content-Type.
 * @param optional whether an empty body is undefined, too, whatever its type
 * @throws Refusal: 400, 408, 413, 415; PayloadNotEncodable: an integer in JSON that a number would change
 */
export async function readBody(request: Request, limits: BodyLimits, optional = false): Promise<unknown> {
  const type = contentType(request.headers)
  if (type === undefined) {
    if ((await readBytes(request, limits)).length === 0) return undefined
    throw unsupportedType('The request has no Content-Type', SUPPORTED)
  }
  const parse = type === null ? undefined : parserOf(type)
  if (type === null || parse === undefined) throw unsupportedType('This Content-Type is not taken', SUPPORTED)
  const coding = request.headers.get('content-encoding')
  if (coding !== null && coding.trim().toLowerCase() !== 'identity') {
    throw unsupportedType('Compressed bodies are not taken', SUPPORTED, { 'accept-encoding': 'identity' })
  }
  const bytes = await readBytes(request, limits)
  if (optional && bytes.length === 0) return undefined
  const value = await parse(bytes, request)
  checkPlain(value, isMessagePack(type.media))
  return value
}

async function readBytes(request: Request, limits: BodyLimits): Promise<Uint8Array<ArrayBuffer>> {
  const { body, bodyUsed } = request
  if (bodyUsed || body?.locked) throw malformed('something has read it before')
  if (body === null) return new Uint8Array()
  const reader = new BoundedReader(request, body, limits)
  const chunks: Uint8Array[] = []
  for (let chunk = await reader.next(); chunk !== undefined; chunk = await reader.next()) chunks.push(chunk)
  return new Uint8Array(Buffer.concat(chunks))
}

type Parse = (bytes: Uint8Array<ArrayBuffer>, request: Request) => unknown

function parserOf(type: ContentType): Parse | undefined {
  const { media, charset } = type
  if (isMessagePack(media)) return parseMessagePack
  if (media === 'multipart/form-data') return parseFields(type)
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8' && charset !== 'us-ascii') return undefined
  if (media === 'application/json' || media.endsWith('+json')) return fromJson
  if (media !== 'application/x-www-form-urlencoded') return undefined
  return (bytes, request) => {
    utf8(bytes)
    return parseFields(type)(bytes, request)
  }
}

function parseFields(type: ContentType): Parse {
  return async (bytes, { headers }) =>
    fieldsOf(await parseForm(bytes, type, headers.get('content-type') ?? ''), SUPPORTED)
}

const packr = Object.assign(new Packr({ useRecords: false, mapsAsObjects: true }), {
  // Integers of 64 bits become numbers if a number holds them: many encoders write every integer that wide.
  // The unpacker knows this setting, its types do not.
  int64AsType: 'auto',
})

function parseMessagePack(bytes: Uint8Array): unknown {
  checkMessagePack(bytes, MAX_DEPTH, malformed)
  return packr.unpack(bytes)
}

/** @throws Refusal: 400; MillpondError: PayloadNotEncodable */
export function fromJson(bytes: Uint8Array): unknown {
  const text = utf8(bytes)
  try {
    return parseJson(text)
  } catch (error) {
    if (isMillpondError(error)) throw error
    throw malformed(isError(error) ? error.message : 'it is not JSON')
  }
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true })

function utf8(bytes: Uint8Array): string {
  try {
    return UTF_8.decode(bytes)
  } catch {
    throw malformed('it is not UTF-8')
  }
}

/** Levels of arrays and objects: far more than real payloads have, and few enough for code that walks them recursively. */
const MAX_DEPTH = 100

/**
 * Refuses values nested too deep, and keys that reach the prototype when a careless merge copies them: `__proto__`, and
 * `constructor` over an object with `prototype`.
 * @param infinite whether numbers may be infinite. Not in JSON: `1e999` parses as Infinity, which would be written as null.
 * @throws Refusal
 */
export function checkPlain(value: unknown, infinite = false, depth = 0): void {
  if (!infinite) finite('', value)
  if (typeof value !== 'object' || value === null || types.isUint8Array(value)) return
  if (depth === MAX_DEPTH) throw malformed(`it is nested deeper than ${MAX_DEPTH} levels`)
  if (Array.isArray(value)) {
    for (const item of value) checkPlain(item, infinite, depth + 1)
    return
  }
  for (const [key, item] of Object.entries(value)) {
    if (key === '__proto__') throw malformed('it has a key named __proto__')
    if (key === 'constructor' && typeof item === 'object' && item !== null && Object.hasOwn(item, 'prototype')) {
      throw malformed('it has a key named constructor.prototype')
    }
    checkPlain(item, infinite, depth + 1)
  }
}

/** For `JSON.stringify`: the value as it is. @throws Refusal: a number that JSON would write as null */
export function finite(_key: string, value: unknown): unknown {
  if (typeof value !== 'number' || Number.isFinite(value)) return value
  throw malformed('it holds a number beyond what a double can hold, such as 1e999')
}
