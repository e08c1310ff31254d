/** Answers other than problems, in JSON or MessagePack, as the request prefers. */
import { preferredFormat } from './headers.ts'
import { pack } from './msgpack.ts'

export interface AnswerOptions {
  /** 200 unless given. */
  status?: number
  headers?: Record<string, string>
}

/** The members that are undefined are left out. Never stored by caches: what it tells is true for a moment. */
export function answer(
  request: Request,
  body: Record<string, unknown>,
  { status = 200, headers }: AnswerOptions = {},
): Response {
  const packed = preferredFormat(request.headers.get('accept')) === 'msgpack'
  const bytes = packed ? new Uint8Array(pack(defined(body))) : Buffer.from(jsonText(body))
  const type = packed ? 'application/msgpack' : 'application/json'
  const always = { 'content-type': type, 'content-length': String(bytes.length), 'cache-control': 'no-store' }
  return new Response(bytes, { status, headers: { ...always, vary: 'accept, prefer', ...headers } })
}

function defined(body: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))
}

/** JSON of anything that a job can hold: byte strings as base64, integers that no JSON number holds as text. NaN and infinities are null. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, function (this: Record<string, unknown>, key, item: unknown) {
    // Not `item`: a Buffer's own toJSON has been at it.
    const own = this[key]
    if (own instanceof Uint8Array) return Buffer.from(own.buffer, own.byteOffset, own.byteLength).toString('base64')
    if (typeof item !== 'bigint') return item
    return Number.isSafeInteger(Number(item)) ? Number(item) : String(item)
  })
}
