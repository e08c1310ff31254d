/** From a request's body to a value: read within bounds, then understood by its Content-Type. */
import { type BodyLimits, BoundedReader } from './bounded-body.ts'
import { joined } from './bytes.ts'
import { type ContentType, contentType, isMessagePack } from './headers.ts'
import { unpack } from './msgpack.ts'
import { checkPlain, malformed } from './plain.ts'
import { Refusal } from './problem.ts'

/** Most fields of a form. */
const MAX_FIELDS = 1000
const SUPPORTED =
  'application/json, application/x-www-form-urlencoded, multipart/form-data, application/msgpack, application/vnd.msgpack, application/x-msgpack'

/**
 * The body as a value; undefined where there is neither a body nor a Content-Type.
 * @param optional whether a body of no bytes is undefined, too, whatever its type
 * @throws Refusal: 400, 408, 413, 415
 */
export async function readBody(request: Request, limits: BodyLimits, optional = false): Promise<unknown> {
  const type = contentType(request)
  if (type === undefined) {
    if ((await readBytes(request, limits)).length === 0) return undefined
    throw unsupported('The request has no Content-Type')
  }
  const parse = type === null ? undefined : parserOf(type)
  if (type === null || parse === undefined) throw unsupported('This Content-Type is not taken')
  const coding = request.headers.get('content-encoding')
  if (coding !== null && coding.trim().toLowerCase() !== 'identity') {
    throw unsupported('Compressed bodies are not taken', { 'accept-encoding': 'identity' })
  }
  const bytes = await readBytes(request, limits)
  if (optional && bytes.length === 0) return undefined
  const value = await parse(bytes, request)
  checkPlain(value, isMessagePack(type.media) ? 'any' : 'finite')
  return value
}

type Parse = (bytes: Uint8Array<ArrayBuffer>, request: Request) => unknown

function parserOf({ media, charset }: ContentType): Parse | undefined {
  if (isMessagePack(media)) return unpack
  if (media === 'multipart/form-data') return parseMultipart
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8' && charset !== 'us-ascii') return undefined
  if (media === 'application/json' || media.endsWith('+json')) return parseJson
  return media === 'application/x-www-form-urlencoded' ? parseForm : undefined
}

function parseJson(bytes: Uint8Array): unknown {
  const text = utf8(bytes)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw malformed(error instanceof Error ? error.message : 'it is not JSON')
  }
}

function parseForm(bytes: Uint8Array): unknown {
  return fields(new URLSearchParams(utf8(bytes)))
}

async function parseMultipart(bytes: Uint8Array<ArrayBuffer>, request: Request): Promise<unknown> {
  const type = request.headers.get('content-type') ?? ''
  const no = 'it is not multipart/form-data with the boundary that its Content-Type names'
  let form: FormData
  try {
    form = await new Response(bytes, { headers: { 'content-type': type } }).formData()
  } catch {
    throw malformed(no)
  }
  // Deno passes over parts that break off, Deno and Bun over those without a name, and say nothing.
  if ([...form].length !== partsOf(bytes, type)) throw malformed(no)
  return fields(form)
}

/** How many parts lie between the boundaries; undefined where the last one is not there. */
function partsOf(bytes: Uint8Array, type: string): number | undefined {
  const [, quoted, bare] = /;\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(type) ?? []
  // A boundary is ASCII, which this leaves as it is whatever the bytes around it are.
  const pieces = `\r\n${new TextDecoder('latin1').decode(bytes)}`.split(`\r\n--${quoted ?? bare}`)
  return pieces.at(-1)?.startsWith('--') ? pieces.length - 2 : undefined
}

/** A name that comes several times has an array of its values. */
function fields(entries: Iterable<[string, string | File]>): Record<string, string | string[]> {
  const form: Record<string, string | string[]> = {}
  let count = 0
  for (const [name, value] of entries) {
    if (++count > MAX_FIELDS) throw malformed(`it has more than ${MAX_FIELDS} fields`)
    if (typeof value !== 'string') throw unsupported('Files in forms are not taken')
    // Assigned like any other it would vanish in the prototype, and escape the check for it.
    if (name === '__proto__') throw malformed('it has a field named __proto__')
    const before = Object.hasOwn(form, name) ? form[name] : undefined
    if (before === undefined) form[name] = value
    else if (Array.isArray(before)) before.push(value)
    else form[name] = [before, value]
  }
  return form
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true })

function utf8(bytes: Uint8Array): string {
  try {
    return UTF_8.decode(bytes)
  } catch {
    throw malformed('it is not UTF-8')
  }
}

async function readBytes(request: Request, limits: BodyLimits): Promise<Uint8Array<ArrayBuffer>> {
  const { body, bodyUsed } = request
  if (bodyUsed || body?.locked) throw malformed('something has read it before')
  if (body === null) return new Uint8Array()
  const reader = new BoundedReader(request, body, limits)
  const chunks: Uint8Array[] = []
  let size = 0
  for (let chunk = await reader.next(); chunk !== undefined; chunk = await reader.next()) {
    size += chunk.byteLength
    chunks.push(chunk)
  }
  return joined(chunks, size)
}

function unsupported(what: string, headers: Record<string, string> = {}): Refusal {
  return new Refusal({
    status: 415,
    detail: `${what}; send one of ${SUPPORTED}, in UTF-8 and uncompressed.`,
    headers: { 'accept-post': SUPPORTED, ...headers },
  })
}
