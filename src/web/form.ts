/**
 * Forms, bounded before they are parsed. The parsers of platforms take seconds for a body of half a million fields, or
 * for a boundary as long as a header may be.
 */
import { malformed } from './body-limits.ts'
import { type ContentType, contentType } from './headers.ts'
import { unsupportedType } from './problem.ts'

/** Most fields of a form. */
const MAX_FIELDS = 1000
/** Most characters of a boundary (RFC 2046, section 5.1.1). */
const MAX_BOUNDARY = 70
const URLENCODED = 'application/x-www-form-urlencoded'
const MULTIPART = 'multipart/form-data'
const FORMS = `${URLENCODED}, ${MULTIPART}`
const AMPERSAND = 0x26

export const isForm = (media: string): boolean => media === URLENCODED || media === MULTIPART

/**
 * The form that a body is.
 * @param read resolves to the body
 * @throws Refusal: 400, 415, and what `read` throws
 */
export async function formData(read: () => Promise<Uint8Array<ArrayBuffer>>, headers: Headers): Promise<FormData> {
  const type = contentType(headers)
  if (type === undefined) throw unsupportedType('The request has no Content-Type', FORMS)
  if (type === null || !isForm(type.media)) throw unsupportedType('This Content-Type is not that of a form', FORMS)
  return parseForm(await read(), type, headers.get('content-type') ?? '')
}

/** @param header the whole Content-Type, of a form @throws Refusal: 400 */
export async function parseForm(bytes: Uint8Array<ArrayBuffer>, { media }: ContentType, header: string) {
  const parts = media === MULTIPART ? partsOf(bytes, header) : undefined
  if (media === URLENCODED) checkFields(countOf(AMPERSAND, bytes) + 1)
  const form = await new Response(bytes, { headers: { 'content-type': header } }).formData().catch(() => undefined)
  if (form === undefined) throw malformed(media === MULTIPART ? NOT_MULTIPART : `it is not ${media}`)
  // Deno silently skips parts that break off; Deno and Bun skip parts without a name.
  if (parts !== undefined && [...form].length !== parts) throw malformed(NOT_MULTIPART)
  return form
}

const NOT_MULTIPART = 'it is not multipart/form-data with the boundary that its Content-Type names'

/** How many parts are between the boundaries. @throws Refusal: 400, also if the last boundary is missing */
function partsOf(bytes: Uint8Array, type: string): number {
  const [, quoted, bare] = /;\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(type) ?? []
  const boundary = quoted ?? bare
  if (boundary === undefined) throw malformed('its Content-Type names no boundary')
  if (boundary.length > MAX_BOUNDARY) throw malformed(`its boundary is longer than ${MAX_BOUNDARY} characters`)
  // A boundary is ASCII, and begins a line.
  const mark = Buffer.from(`\r\n--${boundary}`, 'latin1')
  const lines = Buffer.concat([mark.subarray(0, 2), bytes])
  let count = 0
  let end = 0
  for (let at = lines.indexOf(mark); at >= 0; at = lines.indexOf(mark, end)) {
    end = at + mark.length
    // The last one ends the form.
    checkFields(count++)
  }
  if (lines.toString('latin1', end, end + 2) !== '--') throw malformed(NOT_MULTIPART)
  return count - 1
}

function countOf(byte: number, bytes: Uint8Array): number {
  let count = 0
  for (let at = bytes.indexOf(byte); at >= 0 && count < MAX_FIELDS; at = bytes.indexOf(byte, at + 1)) count++
  return count
}

/** @throws Refusal: 400 */
function checkFields(count: number): void {
  if (count > MAX_FIELDS) throw malformed(`it has more than ${MAX_FIELDS} fields`)
}

/** As a value; the values of a name that comes several times are an array. @throws Refusal: 415, a file */
export function fieldsOf(form: FormData, supported: string): Record<string, string | string[]> {
  const fields = new Map<string, string | string[]>()
  for (const [name, value] of form) {
    if (typeof value !== 'string') throw unsupportedType('Files in forms are not taken', supported)
    const before = fields.get(name)
    if (Array.isArray(before)) before.push(value)
    else fields.set(name, before === undefined ? value : [before, value])
  }
  return Object.fromEntries(fields)
}
