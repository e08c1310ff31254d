/**
 * Which requests may share an answer, and which answers may be shared. In doubt they may not: an answer that goes to the
 * wrong one is worse than work done twice. The rules are those that RFC 9111 sets for shared caches, and stricter.
 */

/** Reads a header by its name in lower case. */
export type HeaderOf = (name: string) => string | null | undefined

/** Headers that say, or may say, on whose behalf a request comes. */
const PERSONAL = [
  'authorization',
  'cookie',
  'proxy-authorization',
  'x-api-key',
  'x-auth-token',
  'x-access-token',
  'x-csrf-token',
  'x-amz-security-token',
]

/** Headers that ask for a part of an answer, for one in comparison with what the client has, or for another protocol; and those of a body. */
const PARTICULAR = [
  'range',
  'if-none-match',
  'if-modified-since',
  'if-match',
  'if-unmodified-since',
  'if-range',
  'upgrade',
  'content-length',
  'transfer-encoding',
  // With these a GET is none to frameworks that heed them.
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
]

/**
 * Headers by which proxies tell what was asked for, and which frameworks put into links and redirects. Anyone can send them, and nobody
 * says so by `Vary`: were they not a part of the key, one client could have its own host written into everyone's answer.
 */
const ROUTED = [
  'forwarded',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-original-url',
  'x-rewrite-url',
]

/** @param more names, in any case, that the service itself goes by */
export function personalHeaders(more: readonly string[]): readonly string[] {
  return [...new Set([...PERSONAL, ...more.map((name) => name.toLowerCase())])]
}

/** Whether the request has a header of the given ones that is not covered. */
export function isPersonal(header: HeaderOf, personal: readonly string[], covered: readonly string[]): boolean {
  for (const name of personal) if (header(name) != null && !covered.includes(name)) return true
  return false
}

/** Whether the request asks for what another's answer cannot be: a part, a comparison, a stream, something fresh, or what its body says. */
export function isParticular(header: HeaderOf): boolean {
  for (const name of PARTICULAR) if (header(name) != null) return true
  const control = header('cache-control')
  if (control != null && /(?:^|[\s,])(?:no-store|no-cache|max-age\s*=\s*"?0+(?!\d))/i.test(control)) return true
  if (header('pragma')?.toLowerCase().includes('no-cache')) return true
  return header('accept')?.toLowerCase().includes('text/event-stream') === true
}

/** What goes in front of a key: nothing for most requests, else a line for each header and an empty one. */
export function routedBy(header: HeaderOf): string {
  let lines = ''
  for (const name of ROUTED) {
    const value = header(name)
    if (value != null) lines += `${name}:${name === 'forwarded' ? withoutNodes(value) : value}\n`
  }
  return lines === '' ? '' : `${lines}\n`
}

/**
 * A `Forwarded` without who asked and by which proxy (RFC 7239, sections 5.1 and 5.2), which with most proxies no two clients share.
 * Only what is plainly an address or a name goes: nothing of it could be taken for a host by those who read the header less strictly.
 */
function withoutNodes(forwarded: string): string {
  return forwarded.replace(/(?<=^|[\s,;])(for|by)=(?:"[\w.:[\]-]*"|[\w.:[\]-]+)(?=[\s,;]|$)/gi, '$1=_')
}

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

/** @param header of the response */
export function verdictOf(status: number, header: HeaderOf): Verdict {
  // Below 200 no Response can be made anew, and one of 0 is an error.
  if (status < 200 || OWN_STATUS.has(status)) return { share: false, lasting: false }
  const control = header('cache-control') ?? ''
  const vary = varyOf(header)
  if (
    vary === undefined ||
    header('set-cookie') != null ||
    // Also with a list of headers that are private: they would have to be left out for the others.
    /(?:^|[\s,])(?:private|no-store|no-cache)(?=$|[\s,=])/i.test(control) ||
    header('pragma')?.toLowerCase().includes('no-cache') ||
    STREAMS.test(header('content-type') ?? '') ||
    header('x-accel-buffering')?.toLowerCase() === 'no'
  ) {
    return { share: false, lasting: true }
  }
  return { share: true, vary, fresh: REUSABLE_STATUS.has(status) ? freshness(control, header) : 0 }
}

/** What a header's name is made of. */
const TOKEN = /^[!#$%&'*+\-.^_`|~a-z0-9]+$/

/** @returns undefined if the answer suits this one request alone, or there is no telling which others */
function varyOf(header: HeaderOf): readonly string[] | undefined {
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
  if (origin != null && origin !== '*') names.add('origin')
  if (header('content-encoding') != null) names.add('accept-encoding')
  return names.has('*') || names.size > MOST_VARY ? undefined : [...names].sort()
}

function freshness(control: string, header: HeaderOf): number {
  // `s-maxage` is meant for those who answer others, as this does, and goes before `max-age`.
  for (const name of ['s-maxage', 'max-age']) {
    const match = new RegExp(`(?:^|[\\s,])${name}\\s*(?:=\\s*"?(\\d*))?`, 'i').exec(control)
    if (match !== null) return Math.max(0, Number(match[1] ?? 0) - Number(header('age') ?? 0) || 0) * 1000
  }
  return header('expires') == null ? Number.POSITIVE_INFINITY : 0
}
