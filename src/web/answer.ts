/** Answers other than problems, in JSON or MessagePack, as the request prefers. */
import { types } from 'node:util'
import { Packr } from 'msgpackr'
import { type Format, preferredFormat } from '../values/encoding/accept.ts'
import { mayEscapeHalf } from '../values/encoding/well-formed.ts'
import { defined } from '../values/options/options.ts'

const packr = new Packr({ useRecords: false, variableMapSize: true })

interface AnswerOptions {
  status?: number
  headers?: Record<string, string>
}

/** Members that are undefined are left out. Caches never store it, because it is true only for a moment. */
export function answer(request: Request, body: object, options: AnswerOptions = {}): Response {
  const format = preferredFormat(request.headers.get('accept'))
  return encodedAnswer(format, encodedBody(format, body), options)
}

/** The same, of a body that is encoded already. */
export function encodedAnswer(
  format: Format,
  bytes: Uint8Array<ArrayBuffer>,
  { status = 200, headers = {} }: AnswerOptions,
): Response {
  const type = `application/${format}`
  const always = { 'content-type': type, 'content-length': String(bytes.length), 'cache-control': 'no-store' }
  return new Response(bytes, { status, headers: { ...always, vary: 'accept, prefer', ...headers } })
}

export function encodedBody(format: Format, body: object): Uint8Array<ArrayBuffer> {
  return format === 'msgpack' ? new Uint8Array(packr.pack(defined(body))) : Buffer.from(jsonText(body))
}

/**
 * JSON of anything that a job can hold: byte strings as base64, integers that no JSON number holds as text. NaN and
 * infinities are null. Half of a surrogate pair becomes a replacement character: strict parsers refuse the whole
 * document for it.
 */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value, function (this: Record<string, unknown>, key, item: unknown) {
    // Not `item`: a Buffer's own toJSON was applied to it.
    const own = this[key]
    if (types.isUint8Array(own)) return Buffer.from(own.buffer, own.byteOffset, own.byteLength).toString('base64')
    if (typeof item !== 'bigint') return item
    return Number.isSafeInteger(Number(item)) ? Number(item) : String(item)
  })
  if (!mayEscapeHalf(text)) return text
  // JSON.stringify writes these escapes for halves alone. Other escapes are stepped over as a whole.
  return text.replaceAll(/\\(?:ud[89a-f][\da-f]{2}|.)/g, (found) => (found.length === 6 ? '\\ufffd' : found))
}
