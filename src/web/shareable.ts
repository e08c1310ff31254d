/**
 * Which answers may be shared; of requests, `request-rules.ts` says so. In doubt they may not: an answer that goes to the
 * wrong one is worse than work done twice. The rules are those that RFC 9111 sets for shared caches, and stricter.
 */

export type Verdict =
  /** `lasting`: the next answer to the same will most likely not be shareable either. */
  | { share: false; lasting: boolean }
  /** `vary`: request headers, in lower case and in order, by which answers differ. `fresh`: most ms for which it may be reused. */
  | { share: true; vary: readonly string[]; fresh: number }

/** Statuses that speak of who asks, of the one connection, or of a part: 429 and 403 often go by the client's address. */
const OWN_STATUS: ReadonlySet<number> = new Set([206, 304, 401, 403, 407, 408, 421, 425, 426, 429, 431])
/** Statuses of answers that hold for a while. */
const REUSABLE_STATUS: ReadonlySet<number> = new Set([200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501])
/** Most names of a `Vary` that are heeded. */
const MAX_VARY_NAMES = 16

const STREAMING_TYPES =
  /^\s*(?:text\/event-stream|multipart\/x-mixed-replace|application\/(?:x-ndjson|ndjson|jsonl|x-jsonlines|json-seq|stream\+json|grpc[^;\s]*))\s*(?:;|$)/i

/** What is told to caches. All are heeded, also those that are meant for others than us, and the strictest holds. */
const CACHE_CONTROLS = [
  ...['cache-control', 'cdn-cache-control', 'surrogate-control'],
  ...['akamai-cache-control', 'cloudflare-cdn-cache-control', 'netlify-cdn-cache-control', 'vercel-cdn-cache-control'],
]
/**
 * Wherever they stand and whatever is between them: `private; max-age=60` is meant as it reads. Also with a list of headers that are
 * private: they would have to be left out for the others.
 */
const UNSHARED = /(?<![\w-])(?:private|no-store|no-cache)(?![\w-])/i

/** @param crossOrigin whether the request has an `Origin` */
export function verdictOf({ status, headers }: Response, crossOrigin: boolean): Verdict {
  // Below 200 no Response can be made anew, and one of 0 is an error.
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
  // Without leave to read it, as from a service that knows no CORS, it is of no use to pages of other origins.
  const isUseless = crossOrigin && !headers.has('access-control-allow-origin')
  return { share: true, vary, fresh: isUseless || !REUSABLE_STATUS.has(status) ? 0 : freshness(controls, headers) }
}

/** What a header's name is made of. */
const TOKEN = /^[!#$%&'*+\-.^_`|~a-z0-9]+$/

/** @returns undefined if the answer suits this one request alone, or there is no telling which others */
function varyOf(headers: Headers, crossOrigin: boolean): readonly string[] | undefined {
  const names = new Set<string>()
  for (const part of (headers.get('vary') ?? '').split(',')) {
    const name = part.trim().toLowerCase()
    if (name === '') continue
    // What the handler meant is anyone's guess, and no request can be asked for such a header.
    if (!TOKEN.test(name)) return undefined
    names.add(name)
  }
  // What services forget to say.
  const origin = headers.get('access-control-allow-origin')
  if (origin !== '*' && (origin !== null || crossOrigin)) names.add('origin')
  if (headers.has('content-encoding')) names.add('accept-encoding')
  return names.has('*') || names.size > MAX_VARY_NAMES ? undefined : [...names].sort()
}

/** The shortest of what the controls say, in ms. `Expires` is heeded as the past, where none says anything. */
function freshness(controls: readonly string[], headers: Headers): number {
  const told = controls.map(secondsIn).filter((seconds) => seconds !== undefined)
  if (told.length === 0) return headers.has('expires') ? 0 : Number.POSITIVE_INFINITY
  return Math.max(0, Math.min(...told) - Number(headers.get('age') ?? 0) || 0) * 1000
}

/** `s-maxage` is meant for those who answer others, as this does, and goes before `max-age`. */
const LIFETIMES = ['s-maxage', 'max-age'].map(
  (name) => new RegExp(`(?<![\\w-])${name}(?![\\w-])\\s*(?:=\\s*"?(\\d*))?`, 'gi'),
)

function secondsIn(control: string): number | undefined {
  for (const lifetime of LIFETIMES) {
    const found = [...control.matchAll(lifetime)]
    // What is no number counts as none: 0.
    if (found.length > 0) return Math.min(...found.map(([, seconds]) => Number(seconds ?? 0)))
  }
  return undefined
}
