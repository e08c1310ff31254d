/**
 * Requests to a webhook's receiver, which may answer anything. By node:http, because `fetch` decodes bodies and emits
 * errors that nobody handles.
 *
 * - Nothing is decompressed, and no redirect is followed.
 * - The status counts, however the body ends: whole, cut off, endless or late.
 * - Request, response and socket always have an error listener.
 * - One time limit covers everything, from the look-up of the name to the last byte.
 */
import { Agent as HttpAgent, type IncomingHttpHeaders, type IncomingMessage, request as sendHttp } from 'node:http'
import { Agent as HttpsAgent, request as sendHttps } from 'node:https'
import { MillpondError } from '../values/errors/errors.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  /** Undefined if it was cut off, late or too long, or the status is not 2xx. */
  body: Buffer | undefined
}

/** Most bytes of an answer's body; a longer body is ignored. */
const MAX_BODY_BYTES = DEFAULTS.webhook.maxAnswer
/** Most bytes of all headers of an answer together. */
const MAX_HEADER_BYTES = 16 * 1024
/** Milliseconds that a connection is kept for the next request: less than receivers usually keep it. */
const IDLE_TIMEOUT = 4000

export class Receiver {
  readonly #url: URL
  readonly #timeout: number
  readonly #agent: HttpAgent

  /**
   * @param timeout milliseconds that a request may take
   * @param connections how many are kept for the next request
   * @throws InvalidOption
   */
  constructor(url: URL, timeout: number, connections: number) {
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw refused('must be http: or https:')
    // It would be sent, and logs that show the URL would show it.
    if (url.username !== '' || url.password !== '') throw refused('must not hold a user or a password')
    this.#url = url
    this.#timeout = timeout
    const Agent = url.protocol === 'https:' ? HttpsAgent : HttpAgent
    this.#agent = new Agent({ keepAlive: true, maxFreeSockets: connections, timeout: IDLE_TIMEOUT })
  }

  /** @throws what `signal` was aborted with, a TimeoutError, or an error of the connection, most with a `code` */
  async post(headers: Readonly<Record<string, string>>, body: string, signal: AbortSignal): Promise<Answer> {
    const ending = AbortSignal.any([signal, AbortSignal.timeout(this.#timeout)])
    try {
      return await this.#exchange(headers, body, ending, this.#agent)
    } catch (error) {
      if (!(error instanceof Stale)) throw error
      return this.#exchange(headers, body, ending, false)
    }
  }

  /** Closes the kept connections. */
  close(): void {
    this.#agent.destroy()
  }

  #exchange(
    headers: Readonly<Record<string, string>>,
    body: string,
    ending: AbortSignal,
    agent: HttpAgent | false,
  ): Promise<Answer> {
    ending.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const request = (this.#url.protocol === 'https:' ? sendHttps : sendHttp)(this.#url, {
      method: 'POST',
      headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
      agent,
      maxHeaderSize: MAX_HEADER_BYTES,
    })
    let head: IncomingMessage | undefined
    let over = false
    const answered = ({ statusCode = 0, headers }: IncomingMessage, whole?: Buffer) => {
      over = true
      resolve({ status: statusCode, headers, body: whole })
    }
    const cut = (error?: unknown) => {
      if (over) return
      if (head !== undefined) answered(head)
      else reject(request.reusedSocket && !ending.aborted ? new Stale() : error)
      over = true
      request.destroy()
    }
    const stop = () => cut(ending.reason)
    ending.addEventListener('abort', stop)

    request.on('error', cut)
    // With a head, the response tells of its own end.
    request.on('close', () => head ?? cut(new Error('the connection was closed')))
    request.on('upgrade', (response, socket) => {
      socket.on('error', () => {})
      head = response
      cut()
      socket.destroy()
    })
    request.on('response', (response) => {
      head = response
      response.on('error', cut)
      response.on('close', cut)
      if (!isSuccess(response.statusCode)) {
        cut()
        return
      }
      const chunks: Buffer[] = []
      let size = 0
      response.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size > MAX_BODY_BYTES) cut()
        else chunks.push(chunk)
      })
      response.on('end', () => {
        if (!response.complete || over) cut()
        else answered(response, Buffer.concat(chunks))
      })
    })
    request.end(body)
    return promise.finally(() => ending.removeEventListener('abort', stop))
  }
}

/** The receiver had closed a connection that was kept, before it saw the request. The next connection is a new one. */
class Stale extends Error {}

export function isSuccess(status: number | undefined): boolean {
  return status !== undefined && status >= 200 && status < 300
}

function refused(what: string): MillpondError {
  return new MillpondError('InvalidOption', `the URL of a delivery ${what}`)
}
