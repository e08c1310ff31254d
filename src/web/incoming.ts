/** A Request of what node:http received. Nothing of its body is read before somebody asks for it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setClient } from './client.ts'
import { checkTarget } from './path.ts'
import { finite } from './plain.ts'
import { Refusal } from './problem.ts'

/** Milliseconds that a client may go on sending a body which nobody wants, so that it gets to read the answer; then it is cut off. */
const MAX_LINGER = 2000

/**
 * Those that no Request can have. Such a request gets one that no handler knows, `X-TRACE`, and so the very answer that is right: 405 with
 * what `Allow` lists.
 */
const FORBIDDEN: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK'])
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD'])
/** A name or address with or without a port; what else a Host header may hold would change the meaning of the URL. */
const HOST = /^(?:[a-z0-9._~-]{1,255}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i

/** Of the requests made here: aborted when the connection is gone before the whole answer is. */
const hangUps = new WeakMap<Request, AbortSignal>()

/**
 * Calls back if the answer, once made, cannot be sent whole. Only of requests that came in by node:http, behind `toNode` or `toFastify`, is that
 * known; of others it is never called back. Their own signal does not tell: `Deno.serve` aborts it after answers that were sent, too.
 */
export function onUnsent(request: Request, callback: () => void): void {
  hangUps.get(request)?.addEventListener('abort', callback, { once: true })
}

/** @throws Refusal where it is no request that can be handled */
export function requestOf(incoming: IncomingMessage, outgoing: ServerResponse): Request {
  const asked = incoming.method ?? 'GET'
  const method = FORBIDDEN.has(asked) ? `X-${asked}` : asked
  const hangUp = new AbortController()
  const made = (request: Request) => {
    hangUps.set(request, hangUp.signal)
    setClient(request, incoming)
    return request
  }
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) hangUp.abort()
    if (!incoming.complete) letGo(incoming)
  })
  outgoing.once('finish', () => {
    if (!incoming.complete) letGo(incoming)
  })
  try {
    const parsed = alreadyParsed(incoming)
    const headers = headersOf(incoming)
    if (parsed?.type !== undefined) headers.set('content-type', parsed.type)
    const init: RequestInit = { method, headers, signal: hangUp.signal }
    const url = urlOf(incoming, headers)
    if (BODILESS.has(method)) return made(new Request(url, init))
    const body = parsed === undefined ? bodyOf(incoming) : parsed.body
    // Fetch asks for `duplex` with a stream for a body, and knows no other value.
    return made(new Request(url, { ...init, body, duplex: 'half' }))
  } catch (error) {
    if (error instanceof Refusal) throw error
    throw new Refusal({ status: 400, detail: 'The request line or a header was not understood.' })
  }
}

/** @throws Refusal where a URL would not say what the request does */
function urlOf(incoming: IncomingMessage, headers: Headers): string {
  // Express takes the prefix of a mounted router off `url`, and keeps the whole here.
  const whole = 'originalUrl' in incoming && typeof incoming.originalUrl === 'string' ? incoming.originalUrl : undefined
  const target = whole ?? incoming.url ?? '/'
  checkTarget(target)
  const authority = incoming.headers[':authority']
  // Of several Host headers, which Node would take the first of, this is a list.
  const host = (typeof authority === 'string' ? authority : undefined) ?? headers.get('host') ?? hostless(incoming)
  if (!HOST.test(host)) throw new Refusal({ status: 400, detail: 'The Host header is not a host.' })
  const scheme = 'encrypted' in incoming.socket && incoming.socket.encrypted === true ? 'https' : 'http'
  // Put together as text: resolved against a base, a target that begins with two slashes would name another host.
  return `${scheme}://${host}${target}`
}

/** Clients from before HTTP/1.1 name no host. */
function hostless({ httpVersionMajor, httpVersionMinor }: IncomingMessage): string {
  if (httpVersionMajor === 1 && httpVersionMinor === 0) return 'localhost'
  throw new Refusal({ status: 400, detail: 'The request has no Host header.' })
}

function headersOf(incoming: IncomingMessage): Headers {
  const headers = new Headers()
  const raw = incoming.rawHeaders
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? ''
    // HTTP/2 lays the request line down as headers of such names.
    if (!name.startsWith(':')) headers.append(name, raw[index + 1] ?? '')
  }
  return headers
}

/** What a body parser before us has made of the body, as text or bytes again. */
function alreadyParsed(
  incoming: IncomingMessage,
): { body: string | Uint8Array<ArrayBuffer>; type?: string } | undefined {
  if (!incoming.readableDidRead || !('body' in incoming) || incoming.body === undefined) return undefined
  const { body } = incoming
  if (typeof body === 'string') return { body }
  if (body instanceof Uint8Array) return { body: new Uint8Array(body) }
  return { body: JSON.stringify(body, finite), type: 'application/json' }
}

function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  let stop = () => {}
  return new ReadableStream<Uint8Array>(
    {
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
          // An error that nobody listens for would end the process.
          incoming.on('error', () => {})
        }
        // Paused first, for a listener would set it going.
        incoming.pause()
        incoming.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
        if (incoming.readableEnded) onEnd()
        else if (incoming.destroyed) onBroken()
      },
      pull() {
        incoming.resume()
      },
      cancel() {
        stop()
      },
    },
    { highWaterMark: 0 },
  )
}

/** The answer is out, and the body is not in. Left alone it would block the connection; closed at once, the client might miss the answer. */
function letGo(incoming: IncomingMessage): void {
  if (incoming.destroyed) return
  incoming.on('error', () => {})
  incoming.resume()
  const timer = setTimeout(() => incoming.destroy(), MAX_LINGER)
  incoming.once('close', () => clearTimeout(timer))
}
