/**
 * The service behind node:http: bounds on everything that comes, and a stop that loses nothing.
 *
 * Stopping: no new connections; what waits is answered with what is known; what is under way may finish; then connections are cut.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { isIPv6, type Socket } from 'node:net'
import { closeServer, toNode } from '../web/node.ts'
import { problem } from '../web/problem.ts'

export interface ServerOptions {
  handle: (request: Request) => Promise<Response>
  /** Called once, when the stop begins. */
  stopping: () => void
  /** Connections at once; more are refused. */
  maxConnections: number
  /** Hears of every answer. */
  onAnswer?: (method: string, path: string, status: number, ms: number) => void
}

/** Bytes of all headers together, and how many there may be. */
const HEADER_BYTES = 16 * 1024
const HEADERS = 100
/** Milliseconds for the headers, for a whole request, and between two requests of a connection. */
const HEADERS_TIMEOUT = 10_000
const REQUEST_TIMEOUT = 60_000
const KEEP_ALIVE = 10_000
/** How often the two are looked after. */
const CHECK = 2000

const BROKEN: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }

export class HttpServer {
  readonly #server: Server
  readonly #options: ServerOptions
  readonly #underWay = new Set<ServerResponse>()
  #stopped: Promise<void> | undefined

  constructor(options: ServerOptions) {
    this.#options = options
    const listener = toNode(options.handle)
    this.#server = createServer(
      {
        maxHeaderSize: HEADER_BYTES,
        headersTimeout: HEADERS_TIMEOUT,
        requestTimeout: REQUEST_TIMEOUT,
        keepAliveTimeout: KEEP_ALIVE,
        connectionsCheckingInterval: CHECK,
      },
      (incoming, outgoing) => {
        this.#note(incoming, outgoing)
        listener(incoming, outgoing)
      },
    )
    this.#server.maxHeadersCount = HEADERS
    this.#server.maxConnections = options.maxConnections
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      // An answer that is under way must not get another one in its midst.
      if ([...this.#underWay].some((outgoing) => outgoing.socket === socket)) socket.destroy()
      else refuse(error, socket)
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

/** What is no HTTP, or too much of it, never becomes a request. */
function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
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
}
