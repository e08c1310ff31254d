/** A repeated request makes one job: the job's id is derived from the `Idempotency-Key`, and a push of a known id stores nothing. */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { decode, encode } from '../values/encoding/encoding.ts'
import { isBoolean, isFunction, type Rules } from '../values/options/options.ts'
import { Refusal } from './problem.ts'

export interface IdempotencyOptions {
  /**
   * The owner of a key, such as the user or tenant of the session: the same key in another scope makes another job. A
   * request with a key but an undefined or empty scope is a 400. Unset: the scope is the `Authorization` header, so a
   * retry with a new token makes another job.
   */
  scope?: ((request: Request) => string | undefined | Promise<string | undefined>) | undefined
  /** Whether a repeated request must have the same payload; if it differs, it is a 422. true unless set. */
  compare?: boolean | undefined
}

export const IDEMPOTENCY_RULES: Rules<IdempotencyOptions> = { scope: isFunction, compare: isBoolean }

/**
 * The request's `Idempotency-Key`: a quoted string, as its draft has it, or the bare token that most clients send;
 * undefined if there is none.
 * @throws Refusal: 400, the key is malformed
 */
export function keyOf(request: Request): string | undefined {
  const value = request.headers.get('idempotency-key')
  if (value === null || /^[\x21\x23-\x2b\x2d-\x7e]{1,255}$/.test(value)) return value ?? undefined
  const quoted = /^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\]){1,255})"$/.exec(value)?.[1]
  if (quoted !== undefined) return quoted.replaceAll(/\\(["\\])/g, '$1')
  const detail = 'Idempotency-Key must be 1 to 255 visible ASCII characters, bare or in double quotes.'
  throw new Refusal(400, detail, { code: 'InvalidOption' })
}

/**
 * The owner of the request's key.
 * @param shared whether all clients are one tenant: then a key needs no owner
 * @throws Refusal: 400 if the owner is not known. Anybody could send such a key and get the job that another client pushed.
 */
export async function scopeOf(request: Request, options: IdempotencyOptions | undefined, shared: boolean) {
  const scope: unknown = options?.scope ? await options.scope(request) : request.headers.get('authorization')
  if (typeof scope === 'string' && scope !== '') return scope
  if (typeof scope !== 'string' && scope != null) throw new TypeError('idempotency.scope must answer with a text')
  if (shared) return ''
  const detail =
    'An Idempotency-Key is taken only where it is known whose it is: send it with Authorization, or signed in.'
  throw new Refusal(400, detail, { code: 'InvalidOption' })
}

/**
 * A UUID of version 8 (RFC 9562, section 5.8): the first 122 free bits of a SHA-256 over queue, scope and key. The same in
 * every process, and while the store knows the job, whatever state it is in.
 */
export function derivedId(queue: string, scope: string, key: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify(['millpond idempotency', queue, scope, key]))
    .digest()
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x80
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80
  const hex = hash.toString('hex', 0, 16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Whether both are stored as the same data; the order of an object's keys does not matter. */
export function sameData(stored: unknown, given: unknown): boolean {
  // As it comes out of the store: a Date as text, undefined members left out, bytes of one class.
  const asStored = (value: unknown) => decode(encode(value, 'data', Number.POSITIVE_INFINITY), 'data')
  return isDeepStrictEqual(asStored(stored), asStored(given))
}
