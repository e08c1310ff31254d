/** Answers other than problems, in JSON or MessagePack, as the request prefers. */
import { types } from 'node:util'
import { Packr } from 'msgpackr'
import { defined } from '../values/options.ts'
import { preferredFormat } from './headers.ts'

const packr = new Packr({ useRecords: false, variableMapSize: true })

/** Members that are undefined are left out. Caches never store it, because it is true only for a moment. */
export function answer(
  request: Request,
  body: object,
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
): Response {
  const packed = preferredFormat(request.headers.get('accept')) === 'msgpack'
  const bytes = packed ? new Uint8Array(packr.pack(defined(body))) : Buffer.from(jsonText(body))
  const type = packed ? 'application/msgpack' : 'application/json'
  const always = { 'content-type': type, 'content-length': String(bytes.length), 'cache-control': 'no-store' }
  return new Response(bytes, { status, headers: { ...always, vary: 'accept, prefer', ...headers } })
}

/** JSON of anything that a job can hold: byte strings as base64, integers that no JSON number holds as text. NaN and infinities are null. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, function (this: Record<string, unknown>, key, item: unknown) {
    // Not `item`: a Buffer's own toJSON was applied to it.
    const own = this[key]
    if (types.isUint8Array(own)) return Buffer.from(own.buffer, own.byteOffset, own.byteLength).toString('base64')
    if (typeof item !== 'bigint') return item
    return Number.isSafeInteger(Number(item)) ? Number(item) : String(item)
  })
}
