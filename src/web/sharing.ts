/**
 * Which answers may be shared; of requests, `shared-requests.ts` says so. In doubt they may not: an answer that goes to the
 * wrong one is worse than work done twice. The rules are those that RFC 9111 sets for shared caches, and stricter.
 */

/** Reads a header by its name in lower case. */
export type HeaderOf = (name: string) => string | null | undefined

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
const MOST_VARY = 16

const STREAMS =
  /^\s*(?:text\/event-stream|multipart\/x-mixed-replace|application\/(?:x-ndjson|ndjson|jsonl|x-jsonlines|json-seq|stream\+json|grpc[^;\s]*))\s*(?:;|$)/i

/** What is told to caches. All are heeded, also those that are meant for others than us, and the strictest holds. */
const CONTROLS = [
  ...['cache-control', 'cdn-cache-control', 'surrogate-control'],
  ...['akamai-cache-control', 'cloudflare-cdn-cache-control', 'netlify-cdn-cache-control', 'vercel-cdn-cache-control'],
]
/**
 * Wherever they stand and whatever is between them: `private; max-age=60` is meant as it reads. Also with a list of headers that are
 * private: they would have to be left out for the others.
 */
const UNSHARED = /(?<![\w-])(?:private|no-store|no-cache)(?![\w-])/i

/**
 * @param header of the response
 * @param crossOrigin whether the request has an `Origin`
 */
export function verdictOf(status: number, header: HeaderOf, crossOrigin: boolean): Verdict {
  // Below 200 no Response can be made anew, and one of 0 is an error.
  if (status < 200 || OWN_STATUS.has(status)) return { share: false, lasting: false }
  const controls = CONTROLS.map((name) => header(name) ?? '')
  const vary = varyOf(header, crossOrigin)
  if (
    vary === undefined ||
    header('set-cookie') != null ||
    controls.some((control) => UNSHARED.test(control)) ||
    header('pragma')?.toLowerCase().includes('no-cache') ||
    STREAMS.test(header('content-type') ?? '') ||
    header('x-accel-buffering')?.toLowerCase() === 'no'
  ) {
    return { share: false, lasting: true }
  }
  // Without leave to read it, as from a service that knows no CORS, it is of no use to pages of other origins.
  const isUseless = crossOrigin && header('access-control-allow-origin') == null
  return { share: true, vary, fresh: isUseless || !REUSABLE_STATUS.has(status) ? 0 : freshness(controls, header) }
}

/** What a header's name is made of. */
const TOKEN = /^[!#$%&'*+\-.^_`|~a-z0-9]+$/

/** @returns undefined if the answer suits this one request alone, or there is no telling which others */
function varyOf(header: HeaderOf, crossOrigin: boolean): readonly string[] | undefined {
  const names = new Set<string>()
  for (const part of (header('vary') ?? '').split(',')) {
    const name = part.trim().toLowerCase()
    if (name === '') continue
    // What the handler meant is anyone's guess, and no request can be asked for such a header.
    if (!TOKEN.test(name)) return undefined
    names.add(name)
  }
  // What services forget to say.
  const origin = header('access-control-allow-origin')
  if (origin !== '*' && (origin != null || crossOrigin)) names.add('origin')
  if (header('content-encoding') != null) names.add('accept-encoding')
  return names.has('*') || names.size > MOST_VARY ? undefined : [...names].sort()
}

/** The shortest of what the controls say, in ms. `Expires` is heeded as the past, where none says anything. */
function freshness(controls: readonly string[], header: HeaderOf): number {
  const told = controls.map(secondsIn).filter((seconds) => seconds !== undefined)
  if (told.length === 0) return header('expires') == null ? Number.POSITIVE_INFINITY : 0
  return Math.max(0, Math.min(...told) - Number(header('age') ?? 0) || 0) * 1000
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
