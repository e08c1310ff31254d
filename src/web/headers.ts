/** The request headers that are read here. Each is bounded in length. A header that does not parse counts as absent, unless said otherwise. */

/** Longest header value that is parsed, in UTF-16 units. Servers bound all of them together; Node at 16 KiB. */
const MAX_HEADER_LENGTH = 4096

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

export const isMessagePack = (media: string): boolean => /^application\/(?:vnd\.|x-)?msgpack$/.test(media)

/** How an answer is encoded. */
export type Format = 'json' | 'msgpack'

/**
 * The format that an `Accept` prefers. JSON if it prefers none: an answer in JSON helps more than a 406.
 * @param accept the header's value; it counts as absent if it is too long
 */
export function preferredFormat(accept: string | null | undefined): Format {
  return preferred(accept, false) === 'msgpack' ? 'msgpack' : 'json'
}

/** Whether `Accept` prefers server-sent events. */
export function prefersEvents(request: Request): boolean {
  return preferred(request.headers.get('accept'), true) === 'events'
}

function preferred(accept: string | null | undefined, events: boolean): Format | 'events' {
  if (accept === null || accept === undefined || accept.length > MAX_HEADER_LENGTH) return 'json'
  // Most clients ask for nothing in particular, and a hit of the cache should not pay for parsing.
  if (!/msgpack/i.test(accept) && !(events && /event-stream/i.test(accept))) return 'json'
  const offered = rangesOf(accept).filter(({ quality }) => quality > 0 && quality <= 1)
  // Of equals the first one wins: clients list first what they like best.
  const formats = offered.sort((a, b) => b.quality - a.quality).map(({ media }) => formatOf(media))
  return formats.find((format) => format !== undefined && (events || format !== 'events')) ?? 'json'
}

/** Whether `Accept` allows JSON or MessagePack, or, with `events`, server-sent events. */
export function isAcceptable(request: Request, events: boolean): boolean {
  const accept = header(request, 'accept') ?? ''
  if (accept.trim() === '') return true
  return rangesOf(accept).some(({ media, quality }) => {
    const format = media === 'text/*' ? 'events' : formatOf(media)
    return quality !== 0 && format !== undefined && (format !== 'events' || events)
  })
}

function rangesOf(accept: string): { media: string; quality: number }[] {
  const ranges = accept.toLowerCase().split(',')
  return ranges.map((range) => {
    const [media = '', ...parameters] = range.split(';').map((part) => part.trim())
    const given = parameters.find((parameter) => parameter.startsWith('q='))
    return { media, quality: given === undefined ? 1 : Number(given.slice(2)) }
  })
}

function formatOf(media: string): Format | 'events' | undefined {
  if (media === 'application/json' || media === 'application/*' || media === '*/*') return 'json'
  if (media === 'text/event-stream') return 'events'
  return isMessagePack(media) ? 'msgpack' : undefined
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

/** As `preferredWait`, at most `maxWait` ms. `seconds` is what the client is told, `ms` the time to wait. */
export function boundedWait(request: Request, maxWait: number): { seconds: number; ms: number } | undefined {
  const asked = preferredWait(request)
  if (asked === undefined || maxWait === 0) return undefined
  const seconds = Math.min(asked, Math.ceil(maxWait / 1000))
  return { seconds, ms: Math.min(seconds * 1000, maxWait) }
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
