/**
 * The service behind node:http: bounds on everything that comes, and a stop that loses nothing.
 *
 * Stopping: no new connections; what waits is answered with what is known; what is under way may finish; then connections are cut.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { isIPv6, type Socket } from 'node:net'
import { closeServer, toNode } from '../web/node.ts'
import { problem } from '../web/problem.ts'
import { inTurn } from '../web/turns.ts'
import { BoundedMessage } from './bounded-message.ts'
import { CONNECTION_LIMITS, type ConnectionLimits } from './limits.ts'

export interface ServerOptions {
  handle: (request: Request) => Promise<Response>
  /** Called once, when the stop begins. */
  stopping: () => void
  limits?: Partial<ConnectionLimits>
  /** Hears of every answer. */
  onAnswer?: (method: string, path: string, status: number, ms: number) => void
}

const BROKEN: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }

export class HttpServer {
  readonly #server: Server
  readonly #options: ServerOptions
  readonly #limits: ConnectionLimits
  /** How many requests each connection has had. */
  readonly #requests = new WeakMap<Socket, number>()
  readonly #underWay = new Set<ServerResponse>()
  #stopped: Promise<void> | undefined

  constructor(options: ServerOptions) {
    this.#options = options
    this.#limits = { ...CONNECTION_LIMITS, ...options.limits }
    const listener = toNode(options.handle, { stall: this.#limits.stall })
    const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => {
      inTurn(incoming, outgoing, () => {
        this.#note(incoming, outgoing)
        listener(incoming, outgoing)
      })
    }
    this.#server = createServer(
      {
        maxHeaderSize: this.#limits.headerBytes,
        headersTimeout: this.#limits.headersTimeout,
        requestTimeout: this.#limits.requestTimeout,
        keepAliveTimeout: this.#limits.keepAlive,
        connectionsCheckingInterval: this.#limits.checkEvery,
        // What Node answers itself, before its turn, is bounded by nothing. So the listener answers to these, too.
        requireHostHeader: false,
        IncomingMessage: BoundedMessage,
      },
      onRequest,
    )
    this.#server.on('checkExpectation', onRequest)
    this.#server.maxHeadersCount = this.#limits.headers
    this.#server.maxConnections = this.#limits.maxConnections
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      // An answer that is under way must not get another one in its midst.
      if ([...this.#underWay].some((outgoing) => outgoing.socket === socket)) socket.destroy()
      else refuse(error, socket, this.#limits.linger)
    })
  }

  /** @param address an IP address @returns the origin, with the port that it got */
  listen(address: string, port: number): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    this.#server.once('error', reject)
    this.#server.listen({ host: address, port }, () => {
      this.#server.off('error', reject)
      const bound = this.#server.address()
      const actual = typeof bound === 'object' && bound !== null ? bound.port : port
      resolve(`http://${isIPv6(address) ? `[${address}]` : address}:${actual}`)
    })
    return promise
  }

  /** Resolves when no connection is left. @param timeout milliseconds that requests under way may take */
  stop(timeout: number): Promise<void> {
    this.#stopped ??= this.#stop(timeout)
    return this.#stopped
  }

  async #stop(timeout: number): Promise<void> {
    const closed = closeServer(this.#server, { timeout })
    // Otherwise clients would go on asking through connections that are open.
    for (const outgoing of this.#underWay) outgoing.shouldKeepAlive = false
    this.#options.stopping()
    await closed
    // Node tells of the server's end before it tells the answers that they were cut, upon which claims are given back.
    await Promise.all([...this.#underWay].map(over))
  }

  #note(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const began = performance.now()
    this.#underWay.add(outgoing)
    const requests = (this.#requests.get(incoming.socket) ?? 0) + 1
    this.#requests.set(incoming.socket, requests)
    if (requests >= this.#limits.maxRequests) outgoing.shouldKeepAlive = false
    outgoing.once('close', () => {
      this.#underWay.delete(outgoing)
      const { onAnswer } = this.#options
      if (onAnswer === undefined) return
      const path = (incoming.url ?? '').split('?', 1)[0] ?? ''
      onAnswer(incoming.method ?? '', path, outgoing.statusCode, performance.now() - began)
    })
  }
}

function over(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    outgoing.once('close', () => resolve())
  })
}

/** What is no HTTP, or too much of it, never becomes a request. @param linger milliseconds */
function refuse(error: NodeJS.ErrnoException, socket: Socket, linger: number): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const status = BROKEN[error.code ?? ''] ?? 400
  const detail = 'The request was not understood, was too long, or did not come in time.'
  void problem({ status, detail })
    .text()
    .then((body) => {
      const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/problem+json\r\nconnection: close\r\n`
      socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    })
  // A client that leaves its side open would count as a connection until it closes. Cut at once, it might miss the answer.
  const timer = setTimeout(() => socket.destroy(), linger)
  socket.once('close', () => clearTimeout(timer))
}
