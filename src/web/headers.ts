/**
 * The request headers that are read here. Each is bounded in length. A header that does not parse counts as absent,
 * unless said otherwise.
 */

import { MAX_HEADER_LENGTH } from '../values/encoding/accept.ts'

/** Undefined if it is absent or too long. */
export function header(request: Request, name: string): string | undefined {
  const value = request.headers.get(name)
  return value === null || value.length > MAX_HEADER_LENGTH ? undefined : value
}

export interface ContentType {
  /** In lower case, without parameters. */
  media: string
  /** In lower case; undefined if there is none. */
  charset: string | undefined
}

const MEDIA = /^\s*([!#$%&'*+\-.^_`|~a-z0-9]+\/[!#$%&'*+\-.^_`|~a-z0-9]+)\s*(?:;|$)/

/** @returns undefined if there is none; null if it is malformed */
export function contentType(headers: Headers): ContentType | null | undefined {
  const value = headers.get('content-type')
  if (value === null) return undefined
  const lower = value.length > MAX_HEADER_LENGTH ? '' : value.toLowerCase()
  const media = MEDIA.exec(lower)?.[1]
  return media === undefined ? null : { media, charset: /;\s*charset\s*=\s*"?([^\s";]+)/.exec(lower)?.[1] }
}

/** `Prefer: wait=SECONDS` (RFC 7240) in seconds; undefined if there is none. */
export function preferredWait(request: Request): number | undefined {
  for (const preference of (header(request, 'prefer') ?? '').split(',')) {
    const seconds = /^\s*wait\s*=\s*(?:(\d{1,9})|"(\d{1,9})")\s*(?:;|$)/i.exec(preference)
    // The first one counts (RFC 7240, section 2).
    if (seconds) return Number(seconds[1] ?? seconds[2])
  }
  return undefined
}

/** As `preferredWait`, at most `longPoll` ms. `seconds` is what the client is told, `ms` the time to wait. */
export function boundedWait(request: Request, longPoll: number): { seconds: number; ms: number } | undefined {
  const asked = preferredWait(request)
  if (asked === undefined || longPoll === 0) return undefined
  const seconds = Math.min(asked, Math.ceil(longPoll / 1000))
  return { seconds, ms: Math.min(seconds * 1000, longPoll) }
}

/**
 * `traceparent` (W3C Trace Context), without the parts that a later version may add to the four known ones.
 * @returns undefined if there is none or it is invalid: then a new trace begins, as the standard says
 */
export function traceParent(request: Request): string | undefined {
  const value = header(request, 'traceparent')
  const parts = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/.exec(value ?? '')
  if (parts === null) return undefined
  const [, version, trace = '', parent = '', more] = parts
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined
  return /^0+$/.test(trace) || /^0+$/.test(parent) ? undefined : parts[0].slice(0, 55)
}
