/** From a request's body to a value: read within bounds, then parsed by its Content-Type. */

import { types } from 'node:util'
import { Packr } from 'msgpackr'
import { checkMessagePack } from '../values/plain-msgpack.ts'
import { isError } from '../values/realms.ts'
import { type BodyLimits, BoundedReader, malformed } from './body-limits.ts'
import { type ContentType, contentType, isMessagePack } from './headers.ts'
import { unsupportedType } from './problem.ts'

/** Most fields of a form. */
const MAX_FIELDS = 1000
const SUPPORTED =
  'application/json, application/x-www-form-urlencoded, multipart/form-data, application/msgpack, application/vnd.msgpack, application/x-msgpack'

/**
 * The body as a value; undefined if there is neither a body nor a Content-Type.
 * @param optional whether an empty body is undefined, too, whatever its type
 * @throws Refusal: 400, 408, 413, 415
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

function parserOf({ media, charset }: ContentType): Parse | undefined {
  if (isMessagePack(media)) return parseMessagePack
  if (media === 'multipart/form-data') return parseMultipart
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8' && charset !== 'us-ascii') return undefined
  if (media === 'application/json' || media.endsWith('+json')) return parseJson
  return media === 'application/x-www-form-urlencoded' ? (bytes) => fields(new URLSearchParams(utf8(bytes))) : undefined
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

function parseJson(bytes: Uint8Array): unknown {
  const text = utf8(bytes)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw malformed(isError(error) ? error.message : 'it is not JSON')
  }
}

async function parseMultipart(bytes: Uint8Array<ArrayBuffer>, request: Request): Promise<unknown> {
  const type = request.headers.get('content-type') ?? ''
  const form = await new Response(bytes, { headers: { 'content-type': type } }).formData().catch(() => undefined)
  // Deno silently skips parts that break off; Deno and Bun skip parts without a name.
  if (form === undefined || [...form].length !== partsOf(bytes, type)) {
    throw malformed('it is not multipart/form-data with the boundary that its Content-Type names')
  }
  return fields(form)
}

/** How many parts are between the boundaries; undefined if the last boundary is missing. */
function partsOf(bytes: Uint8Array, type: string): number | undefined {
  const [, quoted, bare] = /;\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(type) ?? []
  // A boundary is ASCII, which latin1 leaves as it is, whatever the bytes around it are.
  const pieces = `\r\n${new TextDecoder('latin1').decode(bytes)}`.split(`\r\n--${quoted ?? bare}`)
  return pieces.at(-1)?.startsWith('--') ? pieces.length - 2 : undefined
}

/** The values of a name that comes several times are an array. */
function fields(entries: Iterable<[string, string | File]>): Record<string, string | string[]> {
  const form = new Map<string, string | string[]>()
  let count = 0
  for (const [name, value] of entries) {
    if (++count > MAX_FIELDS) throw malformed(`it has more than ${MAX_FIELDS} fields`)
    if (typeof value !== 'string') throw unsupportedType('Files in forms are not taken', SUPPORTED)
    const before = form.get(name)
    if (Array.isArray(before)) before.push(value)
    else form.set(name, before === undefined ? value : [before, value])
  }
  return Object.fromEntries(form)
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
