/** The header `Accept`: which format of an answer a client prefers, and which it allows. */

/** Longest header value that is parsed, in UTF-16 units. Servers bound all of them together; Node at 16 KiB. */
export const MAX_HEADER_LENGTH = 4096

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
  const accept = request.headers.get('accept') ?? ''
  if (accept.trim() === '' || accept.length > MAX_HEADER_LENGTH) return true
  return rangesOf(accept).some(({ media, quality }) => {
    const format = media === 'text/*' ? 'events' : formatOf(media)
    return quality !== 0 && format !== undefined && (format !== 'events' || events)
  })
}

/** Whether `Accept` allows this media type. */
export function accepts(request: Request, media: string): boolean {
  const accept = request.headers.get('accept') ?? ''
  if (accept.trim() === '' || accept.length > MAX_HEADER_LENGTH) return true
  const allowed = [media, media.replace(/\/.*/, '/*'), '*/*']
  return rangesOf(accept).some((range) => range.quality !== 0 && allowed.includes(range.media))
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
