/** A Request made of what node:http received. Its body is read only on demand. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { UnderlyingSource } from 'node:stream/web'
import { types } from 'node:util'
import { finite } from './body.ts'
import { wasSent } from './node-response.ts'
import { checkTarget } from './path.ts'
import { network, setClient } from './permits.ts'
import { Refusal } from './problem.ts'

/** Milliseconds that a client may go on sending a body after its answer, so that it reads the answer. Then its connection is cut. */
const MAX_LINGER = 2000

/** Methods that a Request cannot have. They become ones that no handler knows, such as `X-TRACE`, so the answer is a 405 with `Allow`. */
const FORBIDDEN: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK'])
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD'])
/** A name or address, with or without a port. Anything else in a Host header would change the meaning of the URL. */
const HOST = /^(?:[a-z0-9._~-]{1,255}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i

/** Of the requests made here: aborted if the connection closes before the whole answer is sent. */
const hangUps = new WeakMap<Request, AbortSignal>()

/**
 * Calls back if the answer cannot be sent whole. This is known only behind `toNode` or `toFastify`; for other requests
 * there is no call. Their own signal does not tell: `Deno.serve` aborts it also after answers that were sent.
 */
export function onUnsent(request: Request, callback: () => void): void {
  hangUps.get(request)?.addEventListener('abort', callback, { once: true })
}

/** @throws Refusal: 400 */
export function requestOf(incoming: IncomingMessage, outgoing: ServerResponse): Request {
  const asked = incoming.method ?? 'GET'
  const method = FORBIDDEN.has(asked) ? `X-${asked}` : asked
  const hangUp = new AbortController()
  const drop = () => {
    if (!incoming.complete) dropBody(incoming)
  }
  outgoing.once('finish', drop).once('close', () => {
    if (!wasSent(outgoing)) hangUp.abort()
    drop()
  })
  try {
    const parsed = alreadyParsed(incoming)
    const headers = headersOf(incoming)
    if (parsed?.type !== undefined) headers.set('content-type', parsed.type)
    const url = urlOf(incoming, headers)
    const body = BODILESS.has(method) ? null : parsed === undefined ? bodyOf(incoming) : parsed.body
    // With a stream as the body, fetch demands `duplex`.
    const request = new Request(url, { method, headers, signal: hangUp.signal, body, duplex: 'half' })
    const { remoteAddress } = incoming.socket
    hangUps.set(request, hangUp.signal)
    setClient(request, remoteAddress === undefined ? undefined : network(remoteAddress))
    return request
  } catch (error) {
    if (error instanceof Refusal) throw error
    throw new Refusal(400, 'The request line or a header was not understood.')
  }
}

/** @throws Refusal: 400, a URL would differ from what the request says */
function urlOf(incoming: IncomingMessage, headers: Headers): string {
  // Express removes the prefix of a mounted router from `url`, and keeps the whole here.
  const whole = 'originalUrl' in incoming && typeof incoming.originalUrl === 'string' ? incoming.originalUrl : undefined
  const target = whole ?? incoming.url ?? '/'
  checkTarget(target)
  const authority = incoming.headers[':authority']
  // `headers` has a list if there are several Host headers; Node would take the first.
  const named = headers.get('host')
  if (typeof authority === 'string' && named !== null && named.toLowerCase() !== authority.toLowerCase()) {
    throw new Refusal(400, 'The Host header differs from :authority.')
  }
  const host = (typeof authority === 'string' ? authority : undefined) ?? named ?? hostless(incoming)
  if (!HOST.test(host)) throw new Refusal(400, 'The Host header is not a host.')
  const scheme = 'encrypted' in incoming.socket && incoming.socket.encrypted === true ? 'https' : 'http'
  // Joined as text: resolved against a base, a target that begins with two slashes would name another host.
  return `${scheme}://${host}${target}`
}

/** Clients older than HTTP/1.1 send no Host. */
function hostless({ httpVersionMajor, httpVersionMinor }: IncomingMessage): string {
  if (httpVersionMajor === 1 && httpVersionMinor === 0) return 'localhost'
  throw new Refusal(400, 'The request has no Host header.')
}

function headersOf(incoming: IncomingMessage): Headers {
  const headers = new Headers()
  const raw = incoming.rawHeaders
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? ''
    // In HTTP/2 the request line comes as headers with such names.
    if (!name.startsWith(':')) headers.append(name, raw[index + 1] ?? '')
  }
  return headers
}

/** The body as text or bytes again, if a body parser has read it before. */
function alreadyParsed(
  incoming: IncomingMessage,
): { body: string | Uint8Array<ArrayBuffer>; type?: string } | undefined {
  if (!incoming.readableDidRead || !('body' in incoming) || incoming.body === undefined) return undefined
  const { body } = incoming
  if (typeof body === 'string') return { body }
  if (types.isUint8Array(body)) return { body: new Uint8Array(body) }
  return { body: JSON.stringify(body, finite), type: 'application/json' }
}

function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  let stop = () => {}
  const source: UnderlyingSource<Uint8Array> = {
    start(controller) {
      const onData = (chunk: Uint8Array) => {
        controller.enqueue(chunk)
        incoming.pause()
      }
      const onEnd = () => {
        stop()
        controller.close()
      }
      const onBroken = () => {
        stop()
        controller.error(new Error('the client hung up'))
      }
      stop = () => {
        incoming.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken)
        // Without a listener, an error would end the process.
        incoming.on('error', () => {})
      }
      // Paused first: a listener for data would start it.
      incoming.pause()
      incoming.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
      if (incoming.readableEnded) onEnd()
      else if (incoming.destroyed) onBroken()
    },
    pull: () => void incoming.resume(),
    cancel: () => stop(),
  }
  return new ReadableStream(source, { highWaterMark: 0 })
}

/**
 * Drops the rest of a body after its answer. A body that nobody reads blocks the connection. If it were closed at once, the client might
 * miss the answer.
 */
function dropBody(incoming: IncomingMessage): void {
  if (incoming.destroyed) return
  incoming.on('error', () => {})
  incoming.resume()
  const timer = setTimeout(() => incoming.destroy(), MAX_LINGER)
  incoming.once('close', () => clearTimeout(timer))
}
