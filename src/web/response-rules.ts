/**
 * Which responses may be shared (`request-rules.ts`: which requests). In doubt none: a response that goes to the wrong client is worse than
 * work done twice. The rules are those of RFC 9111 for shared caches, and stricter.
 */

import { isHeaderName } from './request-rules.ts'

export type Verdict =
  /** `lasting`: the next response to the same request will most likely not be shareable either. */
  | { share: false; lasting: boolean }
  /** `vary`: request headers, in lower case and in order, by which responses differ. `fresh`: most ms for which it may be reused. */
  | { share: true; vary: readonly string[]; fresh: number }

/** Statuses that are about the client, its connection, or a part: 429 and 403 often depend on the client's address. */
const OWN_STATUS: ReadonlySet<number> = new Set([206, 304, 401, 403, 407, 408, 421, 425, 426, 429, 431])
/** Statuses of responses that hold for a while. */
const REUSABLE_STATUS: ReadonlySet<number> = new Set([200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501])
/** Most names in a `Vary`; a response with more is not shared. */
const MAX_VARY_NAMES = 16

const STREAMING_TYPES = new RegExp(
  '^\\s*(?:text/event-stream|multipart/x-mixed-replace|' +
    'application/(?:x-ndjson|ndjson|jsonl|x-jsonlines|json-seq|stream\\+json|grpc[^;\\s]*))\\s*(?:;|$)',
  'i',
)

/** Cache-control headers. All are respected, also those for other caches; the strictest applies. */
const CACHE_CONTROLS = [
  ...['cache-control', 'cdn-cache-control', 'surrogate-control'],
  ...['akamai-cache-control', 'cloudflare-cdn-cache-control', 'netlify-cdn-cache-control', 'vercel-cdn-cache-control'],
]
/** Wherever the words stand: `private; max-age=60` is meant as it reads. Also with a list of headers that are private. */
const UNSHARED = /(?<![\w-])(?:private|no-store|no-cache)(?![\w-])/i

/** @param crossOrigin whether the request has an `Origin` */
export function verdictOf({ status, headers }: Response, crossOrigin: boolean): Verdict {
  // A Response with a status below 200 cannot be copied; 0 is an error.
  if (status < 200 || OWN_STATUS.has(status)) return { share: false, lasting: false }
  const controls = CACHE_CONTROLS.map((name) => headers.get(name) ?? '')
  const vary = varyOf(headers, crossOrigin)
  if (
    vary === undefined ||
    headers.has('set-cookie') ||
    controls.some((control) => UNSHARED.test(control)) ||
    headers.get('pragma')?.toLowerCase().includes('no-cache') ||
    STREAMING_TYPES.test(headers.get('content-type') ?? '') ||
    headers.get('x-accel-buffering')?.toLowerCase() === 'no'
  ) {
    return { share: false, lasting: true }
  }
  // Without this header, as from a service without CORS, it is of no use to pages of other origins.
  const isUseless = crossOrigin && !headers.has('access-control-allow-origin')
  return { share: true, vary, fresh: isUseless || !REUSABLE_STATUS.has(status) ? 0 : freshness(controls, headers) }
}

/** @returns undefined if the response suits this one request alone, or it cannot be known which others */
function varyOf(headers: Headers, crossOrigin: boolean): readonly string[] | undefined {
  const names = new Set<string>()
  for (const part of (headers.get('vary') ?? '').split(',')) {
    const name = part.trim().toLowerCase()
    // No request has such a header, so the handler's meaning is unknown.
    if (name !== '' && !isHeaderName(name)) return undefined
    if (name !== '') names.add(name)
  }
  // Services forget to name these two.
  const origin = headers.get('access-control-allow-origin')
  if (origin !== '*' && (origin !== null || crossOrigin)) names.add('origin')
  if (headers.has('content-encoding')) names.add('accept-encoding')
  return names.has('*') || names.size > MAX_VARY_NAMES ? undefined : [...names].sort()
}

/** The shortest lifetime in the controls, in ms. If they have none, `Expires` counts as past. */
function freshness(controls: readonly string[], headers: Headers): number {
  const told = controls.map(secondsIn).filter((seconds) => seconds !== undefined)
  if (told.length === 0) return headers.has('expires') ? 0 : Number.POSITIVE_INFINITY
  return Math.max(0, Math.min(...told) - Number(headers.get('age') ?? 0) || 0) * 1000
}

/** `s-maxage` is meant for shared caches, as this is, and goes before `max-age`. */
const LIFETIMES = ['s-maxage', 'max-age'].map(
  (name) => new RegExp(`(?<![\\w-])${name}(?![\\w-])\\s*(?:=\\s*"?(\\d*))?`, 'gi'),
)

function secondsIn(control: string): number | undefined {
  for (const lifetime of LIFETIMES) {
    const found = [...control.matchAll(lifetime)]
    // A lifetime that is no number counts as 0.
    if (found.length > 0) return Math.min(...found.map(([, seconds]) => Number(seconds ?? 0)))
  }
  return undefined
}
