/** The request headers that are read here. Each is bounded, and what does not parse is as good as absent unless it says otherwise. */

/** Longest header value that is looked at, in UTF-16 units. Servers cap all of them together, at 16 KiB in Node. */
const MAX_HEADER_LENGTH = 4096

/** Undefined where it is absent or too long to be worth a look. */
export function header(request: Request, name: string): string | undefined {
  const value = request.headers.get(name)
  return value === null || value.length > MAX_HEADER_LENGTH ? undefined : value
}

export interface ContentType {
  /** In lower case, without parameters. */
  media: string
  /** In lower case; undefined when not given. */
  charset: string | undefined
}

const MEDIA = /^\s*([!#$%&'*+\-.^_`|~a-z0-9]+\/[!#$%&'*+\-.^_`|~a-z0-9]+)\s*(?:;|$)/

/** @returns undefined where there is none; null where it is not one */
export function contentType(request: Request): ContentType | null | undefined {
  const value = request.headers.get('content-type')
  if (value === null) return undefined
  const lower = value.length > MAX_HEADER_LENGTH ? '' : value.toLowerCase()
  const media = MEDIA.exec(lower)?.[1]
  if (media === undefined) return null
  return { media, charset: /;\s*charset\s*=\s*"?([^\s";]+)/.exec(lower)?.[1] }
}

export const isMessagePack = (media: string): boolean =>
  media === 'application/msgpack' || media === 'application/vnd.msgpack' || media === 'application/x-msgpack'

/** What an answer may be laid down as. */
export type Format = 'json' | 'msgpack'

/**
 * The format that an `Accept` prefers; JSON where it prefers none, for an answer in JSON helps more than a 406.
 * @param accept the header's value; as good as absent if it is too long to be worth a look
 */
export function preferredFormat(accept: string | null | undefined): Format {
  return preferred(accept, false) === 'msgpack' ? 'msgpack' : 'json'
}

/** Whether server-sent events are what `Accept` prefers. */
export function prefersEvents(request: Request): boolean {
  return preferred(request.headers.get('accept'), true) === 'events'
}

function preferred(accept: string | null | undefined, events: boolean): Format | 'events' {
  if (accept === null || accept === undefined || accept.length > MAX_HEADER_LENGTH) return 'json'
  const text = accept.toLowerCase()
  // Most ask for nothing in particular, and a cache's hit has no time to lose.
  if (!text.includes('msgpack') && !(events && text.includes('event-stream'))) return 'json'
  let best: Format | 'events' = 'json'
  let quality = 0
  for (const range of text.split(',')) {
    const [media = '', ...parameters] = range.split(';').map((part) => part.trim())
    const format = formatOf(media)
    if (format === undefined || (format === 'events' && !events)) continue
    const given = parameters.find((parameter) => parameter.startsWith('q='))
    const q = given === undefined ? 1 : Number(given.slice(2))
    // Of equals the first named wins, as clients list what they like best first.
    if (q > quality && q <= 1) {
      best = format
      quality = q
    }
  }
  return best
}

function formatOf(media: string): Format | 'events' | undefined {
  if (media === 'application/json' || media === 'application/*' || media === '*/*') return 'json'
  if (media === 'text/event-stream') return 'events'
  return isMessagePack(media) ? 'msgpack' : undefined
}

/** `Prefer: wait=SECONDS` (RFC 7240) in seconds; undefined where it is not asked for. */
export function preferredWait(request: Request): number | undefined {
  for (const preference of (header(request, 'prefer') ?? '').split(',')) {
    const seconds = /^\s*wait\s*=\s*(?:(\d{1,9})|"(\d{1,9})")\s*(?:;|$)/i.exec(preference)
    // The first one counts (RFC 7240, section 2).
    if (seconds) return Number(seconds[1] ?? seconds[2])
  }
  return undefined
}

/** The same, no longer than `maxWait`, in ms: as it is told to the client, and as it is waited. */
export function boundedWait(request: Request, maxWait: number): { seconds: number; ms: number } | undefined {
  const asked = preferredWait(request)
  if (asked === undefined || maxWait === 0) return undefined
  const seconds = Math.min(asked, Math.ceil(maxWait / 1000))
  return { seconds, ms: Math.min(seconds * 1000, maxWait) }
}

/**
 * `Idempotency-Key`: a string of structured headers (quoted), as its draft has it, or the bare token that most clients send; 1 to 255
 * characters of visible ASCII, in quotes also spaces.
 * @returns undefined where there is none; null where it is not one
 */
export function idempotencyKey(request: Request): string | null | undefined {
  const value = request.headers.get('idempotency-key')
  if (value === null) return undefined
  const quoted = /^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\]){1,255})"$/.exec(value)
  if (quoted) return (quoted[1] ?? '').replaceAll(/\\(["\\])/g, '$1')
  return /^[\x21\x23-\x2b\x2d-\x7e]{1,255}$/.test(value) ? value : null
}

/**
 * `traceparent` (W3C Trace Context). What follows the four parts that are known in a later version is left out.
 * @returns undefined where there is none or it is invalid: the trace then begins anew, as the standard says
 */
export function traceParent(request: Request): string | undefined {
  const value = header(request, 'traceparent')
  const parts = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/.exec(value ?? '')
  if (parts === null) return undefined
  const [, version, trace = '', parent = '', more] = parts
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined
  return /^0+$/.test(trace) || /^0+$/.test(parent) ? undefined : parts[0].slice(0, 55)
}
